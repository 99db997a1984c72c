// A library with the functions of libnccl.so.2 that NcclLibrary asks for. Only ncclGetVersion
// succeeds: 99.1.2.

#define FAILS(name) \
    int name() {    \
        return 1;   \
    }

extern "C" {
int ncclGetVersion(int* version) {
    *version = 99 * 10000 + 1 * 100 + 2;
    return 0;
}
FAILS(ncclGetErrorString)
FAILS(ncclGetUniqueId)
FAILS(ncclCommInitRank)
FAILS(ncclCommDestroy)
FAILS(ncclCommAbort)
FAILS(ncclAllReduce)
FAILS(ncclReduceScatter)
FAILS(ncclAllGather)
FAILS(ncclBroadcast)
FAILS(ncclReduce)
FAILS(ncclGroupStart)
FAILS(ncclGroupEnd)
FAILS(ncclSend)
FAILS(ncclRecv)
FAILS(ncclMemAlloc)
FAILS(ncclMemFree)
FAILS(ncclCommWindowRegister)
FAILS(ncclCommWindowDeregister)
}
