// A library with the functions of libnccl.so.2 that NcclLibrary asks for. Only ncclGetVersion
// succeeds: 99.1.2.

extern "C" {
int ncclGetVersion(int* version) {
    *version = 99 * 10000 + 1 * 100 + 2;
    return 0;
}
int ncclGetErrorString() {
    return 1;
}
int ncclGetUniqueId() {
    return 1;
}
int ncclCommInitRank() {
    return 1;
}
int ncclCommDestroy() {
    return 1;
}
int ncclCommAbort() {
    return 1;
}
int ncclCommGetAsyncError() {
    return 1;
}
int ncclGroupStart() {
    return 1;
}
int ncclGroupEnd() {
    return 1;
}
int ncclAllReduce() {
    return 1;
}
int ncclReduceScatter() {
    return 1;
}
int ncclAllGather() {
    return 1;
}
}
