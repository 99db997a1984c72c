// The part of NCCL's API that the client calls: from NCCL's own header if CMake has found it, which
// then also checks our declarations of what that header lacks.
#pragma once
#include <cuda.h>
#include <stddef.h>

#ifdef SYMM_NCCL_HEADER
#include <nccl.h>
#else
typedef struct ncclComm* ncclComm_t;
typedef struct ncclWindow_vidmem* ncclWindow_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
typedef enum {
    ncclSuccess = 0,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7
} ncclResult_t;
typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 } ncclRedOp_t;
typedef enum { ncclFloat = 7, ncclDouble = 8, ncclFloat8e4m3 = 10 } ncclDataType_t;
enum { NCCL_WIN_COLL_SYMMETRIC = 1, NCCL_SHRINK_ABORT = 1 };
ncclResult_t ncclGetUniqueId(ncclUniqueId*);
ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int);
ncclResult_t ncclCommSplit(ncclComm_t, int, int, ncclComm_t*, void*);
ncclResult_t ncclCommShrink(ncclComm_t, int*, int, ncclComm_t*, void*, int);
ncclResult_t ncclCommFinalize(ncclComm_t);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclCommAbort(ncclComm_t);
ncclResult_t ncclCommRevoke(ncclComm_t, int);
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t*);
ncclResult_t ncclMemAlloc(void**, size_t);
ncclResult_t ncclMemFree(void*);
ncclResult_t ncclCommWindowRegister(ncclComm_t, void*, size_t, ncclWindow_t*, int);
ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t);
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           CUstream);
ncclResult_t ncclAllGather(const void*, void*, size_t, ncclDataType_t, ncclComm_t, CUstream);
ncclResult_t ncclReduceScatter(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                               CUstream);
ncclResult_t ncclBroadcast(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, CUstream);
ncclResult_t ncclBcast(void*, size_t, ncclDataType_t, int, ncclComm_t, CUstream);
ncclResult_t ncclReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
                        CUstream);
ncclResult_t ncclSend(const void*, size_t, ncclDataType_t, int, ncclComm_t, CUstream);
ncclResult_t ncclRecv(void*, size_t, ncclDataType_t, int, ncclComm_t, CUstream);
const char* ncclGetLastError(ncclComm_t);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclGroupSimulateEnd(void*);
#endif

// Newer than 2.28.9, or the stand-in's. The first is in libsymm_nccl.so alone.
__attribute__((weak)) ncclResult_t ncclAllReduceConfig(const void*, void*, size_t, int, int,
                                                       ncclComm_t, CUstream, const void*);
ncclResult_t ncclCommSuspend(ncclComm_t, int);
ncclResult_t ncclCommResume(ncclComm_t);
__attribute__((weak)) long stand_in_calls(const char* function);
__attribute__((weak)) void stand_in_delay(int calls);
