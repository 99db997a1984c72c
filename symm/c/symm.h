/// \file
/// The library's interface for C11, and for every language that can call C.
///
/// \code
/// symm_comm* comm = NULL;
/// if (symm_comm_create(&comm, rank, ranks, "my run", NULL) != SYMM_SUCCESS) {
///     fprintf(stderr, "%s\n", symm_last_error());
/// }
/// void* window = NULL;
/// symm_window_allocate(comm, count * sizeof(float), &window);
/// symm_all_reduce(comm, window, window, count, SYMM_FLOAT, SYMM_SUM, symm_comm_stream(comm));
/// symm_comm_synchronize(comm, symm_comm_stream(comm));
/// symm_comm_destroy(comm);
/// \endcode
///
/// Every function that can fail returns a symm_result, and then symm_last_error() has the reason.
/// A null pointer where an object is expected is SYMM_ERROR_INVALID_ARGUMENT. So is a communicator
/// that was destroyed.
///
/// Collective functions are called by all ranks, in the same order. A communicator is used by one
/// thread at a time, which may be any, with any CUDA context current or none, and finds its
/// context unchanged afterwards. symm_comm_async_error(), symm_comm_gave_up() and symm_comm_abort()
/// may be called from any thread meanwhile, until symm_comm_destroy(). Different communicators are
/// independent.
///
/// A child of fork() cannot use its parent's communicators: there symm_comm_abort() and
/// symm_comm_destroy() do nothing, and other calls are SYMM_ERROR_INVALID_ARGUMENT. Nor can it
/// create one if its parent has used the CUDA driver (SYMM_ERROR_CUDA). Start ranks as new
/// programs, or fork first. A program may end without symm_comm_destroy(): its peers are told that
/// it is gone.
#ifndef SYMM_H
#define SYMM_H

#include <stddef.h>

#if defined(__GNUC__)
#define SYMM_API __attribute__((visibility("default")))
#else
#define SYMM_API
#endif

// A program may pass any int, which C++ allows only if the enumeration is one.
#ifdef __cplusplus
#define SYMM_IS_INT : int
extern "C" {
#else
#define SYMM_IS_INT
#endif

/// This header's version. symm_version() returns the library's.
#define SYMM_VERSION_MAJOR 0
#define SYMM_VERSION_MINOR 2
#define SYMM_VERSION_PATCH 0
#define SYMM_VERSION (SYMM_VERSION_MAJOR * 10000 + SYMM_VERSION_MINOR * 100 + SYMM_VERSION_PATCH)

typedef enum symm_result SYMM_IS_INT {
    SYMM_SUCCESS = 0,
    /// The call is not possible. It has changed nothing, and the communicator can still be used.
    SYMM_ERROR_INVALID_ARGUMENT = 1,
    /// Another rank has failed, is gone, did not come, or makes a different call.
    SYMM_ERROR_RANK = 2,
    SYMM_ERROR_CUDA = 3,    ///< A call of the CUDA driver failed.
    SYMM_ERROR_SYSTEM = 4,  ///< The system refused memory, descriptors, sockets or threads.
    SYMM_ERROR_FAILED = 5   ///< Anything else, as a wait that timed out or was aborted.
} symm_result;

/// Types of elements, numbered as in nccl.h.
typedef enum symm_type SYMM_IS_INT {
    SYMM_INT8 = 0,
    SYMM_UINT8 = 1,
    SYMM_INT32 = 2,
    SYMM_UINT32 = 3,
    SYMM_INT64 = 4,
    SYMM_UINT64 = 5,
    SYMM_HALF = 6,
    SYMM_FLOAT = 7,
    SYMM_DOUBLE = 8,
    SYMM_BFLOAT16 = 9,
    SYMM_FLOAT8_E4M3 = 10  ///< Only as the output of symm_all_reduce_rms_norm().
} symm_type;

/// Operations, numbered as in nccl.h.
typedef enum symm_op SYMM_IS_INT {
    SYMM_SUM = 0,
    SYMM_PROD = 1,
    SYMM_MAX = 2,
    SYMM_MIN = 3,
    SYMM_AVG = 4
} symm_op;

/// One rank's communicator.
typedef struct symm_comm symm_comm;

/// A CUstream, which is also a cudaStream_t.
typedef struct CUstream_st* symm_stream;

/// The same on all ranks, except for the device.
typedef struct symm_options {
    size_t size;          ///< sizeof(symm_options).
    int device;           ///< The ordinal of the rank's GPU; -1: rank % number of GPUs.
    double timeout;       ///< Seconds that a kernel's wait lasts at most; 0: SYMM_TIMEOUT, or ever.
    unsigned max_blocks;  ///< The most blocks of a kernel; 0: SYMM_MAX_BLOCKS, or all that fit.
} symm_options;

/// The defaults, also those of a null pointer.
#define SYMM_OPTIONS_INIT \
    { sizeof(symm_options), -1, 0.0, 0 }

/// The library's version, as SYMM_VERSION.
SYMM_API int symm_version(void);
/// The result's name, `SYMM_ERROR_RANK`.
SYMM_API const char* symm_result_name(symm_result result);
/// Why this thread's last failed call failed. Valid until its next failed call; never null.
SYMM_API const char* symm_last_error(void);
/// Sets `*emulated` to 1 if GPUs are emulated, else to 0. Host code can read and write the memory
/// of emulated GPUs.
SYMM_API symm_result symm_is_emulated(int* emulated);

/// The function of this name (`cuStreamCreate`) of the driver in use, real or emulated, with its
/// prototype in the cuda.h that libsymm was built with. Null if libsymm itself does not call it, or
/// if no driver can be used.
SYMM_API void* symm_driver_function(const char* name);

/// Creates a communicator. Collective. The ranks are processes, or threads of one process; they
/// meet under `name`, which no other run of the same user on this machine may use meanwhile. A
/// rank that finds another one missing fails after SYMM_TIMEOUT (30 s).
SYMM_API symm_result symm_comm_create(symm_comm** comm, int rank, int ranks, const char* name,
                                      const symm_options* options);
/// The same for a process that torchrun, mpirun or srun started, by their variables.
SYMM_API symm_result symm_comm_create_from_launcher(symm_comm** comm, const symm_options* options);

/// Puts the `bytes` bytes at `mine` of every rank into `all`, by rank. Returns 0 for success.
typedef int (*symm_allgather)(void* context, const void* mine, void* all, size_t bytes);
/// The same for ranks that can exchange bytes. Calls `allgather` once, during creation: the ranks
/// agree on a name, and then meet as with symm_comm_create().
SYMM_API symm_result symm_comm_create_by_allgather(symm_comm** comm, int rank, int ranks,
                                                   symm_allgather allgather, void* context,
                                                   const symm_options* options);

/// The rank's number, the number of ranks, and the ordinal of the rank's GPU. -1 for a null
/// pointer, a destroyed communicator and in a child of fork().
SYMM_API int symm_comm_rank(const symm_comm* comm);
SYMM_API int symm_comm_ranks(const symm_comm* comm);
SYMM_API int symm_comm_device(const symm_comm* comm);
/// A stream of the communicator's own, for callers that have none. It lives as long as the
/// communicator. Null where symm_comm_rank() is -1.
SYMM_API symm_stream symm_comm_stream(const symm_comm* comm);

/// Allocates a window: `bytes` of memory on each rank that the kernels of all ranks can use, not
/// zeroed. Collective. Sets `*window` to the address of this rank's memory.
SYMM_API symm_result symm_window_allocate(symm_comm* comm, size_t bytes, void** window);
/// Makes a window of memory that each rank has already, from cuMemCreate, at its own address.
/// Collective. Calls may use that address, or the one in `*window`. Release the window before the
/// memory.
SYMM_API symm_result symm_window_register(symm_comm* comm, void* memory, size_t bytes,
                                          void** window);
/// Destroys a window. Collective. Waits for the work of all ranks.
SYMM_API symm_result symm_window_release(symm_comm* comm, void* window);
/// The same without a wait, and not collective: each rank does it between the same calls. The
/// memory goes back once no earlier call uses it, during a later call that is not captured. Graphs,
/// and kernels of your own, must have ended their use of it. Also while a stream is being captured.
SYMM_API symm_result symm_window_retire(symm_comm* comm, void* window);

/// Queues a call in the stream; does not wait for it. `out[i]` becomes the reduction of all ranks'
/// `in[i]`, in the order of the ranks. The buffers have `count` elements each, are the same or do
/// not overlap, and are aligned to the element's size. Both lie in windows on all ranks, or on
/// none; in windows large calls are faster. May be captured in a graph.
///
/// After a refusal (SYMM_ERROR_INVALID_ARGUMENT) the rank's next call waits until all ranks have
/// refused theirs too. SYMM_CHECK=1 compares the calls of all ranks. Keep the stream at least
/// until the next call. Kernels that gave up waiting leave wrong results, and say so only through
/// symm_comm_synchronize() and symm_comm_async_error().
SYMM_API symm_result symm_all_reduce(symm_comm* comm, const void* in, void* out, size_t count,
                                     symm_type type, symm_op op, symm_stream stream);
/// The same for a ReduceScatter: `in` has a part of `count` elements for each rank, `out` one part.
/// In place, `out` is this rank's part of `in`.
SYMM_API symm_result symm_reduce_scatter(symm_comm* comm, const void* in, void* out, size_t count,
                                         symm_type type, symm_op op, symm_stream stream);
/// The same for an AllGather: `in` has `count` elements, `out` as many for each rank. In place,
/// `in` is this rank's part of `out`.
SYMM_API symm_result symm_all_gather(symm_comm* comm, const void* in, void* out, size_t count,
                                     symm_type type, symm_stream stream);
/// The same for a Broadcast: `out` gets the `in` of the rank `root`; that of others is not looked
/// at. Both have `count` elements. Either all ranks' `out` lie in windows or none; `in` may lie in
/// any memory.
SYMM_API symm_result symm_broadcast(symm_comm* comm, const void* in, void* out, size_t count,
                                    symm_type type, int root, symm_stream stream);
/// The same for a Reduce: the `out` of the rank `root` becomes the reduction of all ranks' `in`;
/// that of others is not looked at. Either all ranks' `in` lie in windows or none; `out` may lie in
/// any memory.
SYMM_API symm_result symm_reduce(symm_comm* comm, const void* in, void* out, size_t count,
                                 symm_type type, symm_op op, int root, symm_stream stream);
/// Buffers of symm_all_reduce_rms_norm(): `rows` rows of `hidden` elements, and rows of weights.
typedef struct symm_rms_norm {
    size_t size;  ///< sizeof(symm_rms_norm).
    const void* x;
    void* residual;  ///< Null: none.
    void* out;
    const void* weight;      ///< One row.
    const void* bias;        ///< One row; null: none.
    const float* out_scale;  ///< On the GPU: for SYMM_FLOAT8_E4M3 alone.
    unsigned rows;           ///< 1 to 8,192.
    unsigned hidden;         ///< 512 to 16,384, whole 16 bytes of `type`.
    symm_type type;          ///< Of x and residual: float, half or bfloat16.
    symm_type weight_type;   ///< Of weight and bias: `type`, or float.
    symm_type out_type;      ///< `type`, or SYMM_FLOAT8_E4M3.
    float epsilon;           ///< Added to the mean of a row's squares.
    float weight_offset;     ///< Added to each weight: 1 for models whose weights are (1 + w).
} symm_rms_norm;
/// Queues, as one kernel and row by row (symm/collectives/all_reduce_rms_norm.hpp):
///
///     residual += sum of all ranks' x
///     out = (residual / rms(residual) * (weight + weight_offset) + bias) / out_scale
///
/// rms is the square root of `epsilon` plus the mean of the row's squares. Without a residual, x's
/// sum takes its place, and is not stored. Ranks pass the same residual, weights, bias and scale,
/// and get the same bits. A row's bits do not depend on the other rows, nor on how many there are.
/// Each buffer begins at a multiple of 16 bytes, and none overlap. Many rows are faster if x lies
/// in a window, and for more than two ranks the residual, too: on all ranks, or on none. Otherwise
/// as symm_all_reduce(), but a communicator's first such call waits on the host for the other
/// ranks', and cannot be captured.
SYMM_API symm_result symm_all_reduce_rms_norm(symm_comm* comm, const symm_rms_norm* call,
                                              symm_stream stream);
/// 0 if symm_all_reduce() with these arguments waits for no other rank on the host, else 1; also
/// for a call that would be refused, since the next one then waits. A thread that has several ranks
/// needs a thread for each to make such calls.
SYMM_API int symm_all_reduce_may_wait(symm_comm* comm, const void* in, void* out, size_t count,
                                      symm_type type, symm_op op, symm_stream stream);
/// The same for the others.
SYMM_API int symm_reduce_scatter_may_wait(symm_comm* comm, const void* in, void* out, size_t count,
                                          symm_type type, symm_op op, symm_stream stream);
SYMM_API int symm_all_gather_may_wait(symm_comm* comm, const void* in, void* out, size_t count,
                                      symm_type type, symm_stream stream);
SYMM_API int symm_broadcast_may_wait(symm_comm* comm, const void* in, void* out, size_t count,
                                     symm_type type, int root, symm_stream stream);
SYMM_API int symm_reduce_may_wait(symm_comm* comm, const void* in, void* out, size_t count,
                                  symm_type type, symm_op op, int root, symm_stream stream);

/// Waits for the stream. Fails if a kernel gave up waiting, and names the rank that it waited for.
/// After that the communicator can only be destroyed.
SYMM_API symm_result symm_comm_synchronize(symm_comm* comm, symm_stream stream);
/// Waits for all work of the rank's GPU, as symm_comm_destroy() does. Fails if a call has no
/// result.
SYMM_API symm_result symm_comm_finish(symm_comm* comm);
/// The same for a limited time: then it ends the calls in flight, as symm_comm_abort() does.
SYMM_API symm_result symm_comm_finish_within(symm_comm* comm, double seconds);
/// Marks the end of the work queued so far in the stream, for programs that free a call's memory
/// without a wait. Marks have numbers from 1 on; `*mark` is 0 if the stream is being captured.
SYMM_API symm_result symm_comm_mark(symm_comm* comm, symm_stream stream, size_t* mark);
/// Sets `*mark` to the last mark that is passed, with all before it. Does not wait.
SYMM_API symm_result symm_comm_passed(symm_comm* comm, size_t* mark);
/// Lets `stream` wait for the work queued so far in the stream `earlier`, unless `stream` is being
/// captured. The host does not wait.
SYMM_API symm_result symm_comm_follow(symm_comm* comm, symm_stream stream, symm_stream earlier);
/// Copies between this rank's GPU and the host, in either direction. Waits for the copy, but not
/// for other streams: synchronize them first.
SYMM_API symm_result symm_copy(symm_comm* comm, void* to, const void* from, size_t bytes);
/// Fails if a rank has failed so far, or a kernel has given up. Does not wait.
SYMM_API symm_result symm_comm_async_error(symm_comm* comm);
/// The same, but a rank that is gone counts only once a kernel has waited for it: for programs
/// whose ranks may leave while others still work on their own.
SYMM_API symm_result symm_comm_gave_up(symm_comm* comm);
/// Ends all calls in flight, and those still to come, as soon as a wait checks for it, also a wait
/// on the host for the other ranks. After that the communicator can only be destroyed.
SYMM_API symm_result symm_comm_abort(symm_comm* comm);
/// Waits for the calls in flight, then frees the communicator and its windows. Not collective.
/// Calls that wait for a failed rank end, and after an abort or a failure the other ranks are
/// told. A null pointer does nothing. A second time is SYMM_ERROR_INVALID_ARGUMENT.
SYMM_API symm_result symm_comm_destroy(symm_comm* comm);

#ifdef __cplusplus
}
#endif

#endif
