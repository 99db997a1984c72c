#pragma once
/// \file
/// What a shared object that SYMM_ALGORITHMS names exports: AllReduce algorithms of one's own.
///
/// Only numbers, addresses and functions of C cross, so the object may have been built with another
/// compiler, and it links nothing of this repository. In C++, <symm/algorithm.hpp> fills all this
/// in from a kernel. Sizes are bytes; types and operations are numbered as in nccl.h.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SYMM_ALGORITHM_VERSION 1
#define SYMM_ALGORITHM_RANKS 8  ///< At most.

/// A block of an emulated GPU, as one of its threads sees it.
struct symm_host_block {
    unsigned index, blocks, size, thread;
    void* shared;        ///< Dynamic shared memory.
    uint64_t* exchange;  ///< A value for each thread, for shuffles and votes.
    void* self;          ///< To pass to these:
    int (*sync)(void* self, int vote);
    void (*sync_warp)(void* self, unsigned warp);
    void (*sync_named)(void* self, unsigned number, unsigned threads);
    void (*give_way)(int idle);  ///< After a poll that found nothing: lets other threads run.
};

/// A kernel for one type and number of ranks.
struct symm_kernel {
    const char* name;
    size_t parameter_bytes;
    unsigned shared_bytes;
    /// Runs one thread on an emulated GPU.
    void (*run)(const struct symm_host_block* block, const void* parameters);
    /// Sets `*function` to the CUfunction in the current context, and `*resident` to how many
    /// blocks of so many threads the current device keeps resident. Returns a CUresult.
    int (*on_gpu)(unsigned threads, void** function, unsigned* resident);
};

/// One launch on one rank.
struct symm_launch {
    int rank, ranks, type, op;
    const void* in;
    void* out;
    size_t count;  ///< Elements.
    /// The algorithm's memory on rank 0; that of rank r is `r * stride` behind it.
    void* memory;
    size_t stride;
    /// This rank's buffers, at the addresses at which rank p has them mapped; its own addresses if
    /// they lie in no window.
    uint64_t seen_in[SYMM_ALGORITHM_RANKS], seen_out[SYMM_ALGORITHM_RANKS];
    /// simt::Timeout: `gave_up` in device memory, the report in host memory, and nanoseconds.
    void *gave_up, *report;
    uint64_t limit_ns;
};

struct symm_algorithm {
    const char* name;  ///< For --algo and SYMM_ALGO.
    const char* why;   ///< A call takes it.
    int floating_only, needs_windows;
    /// Memory on each rank: zeroed, but from `ones_from` on filled with one bits.
    size_t (*memory_bytes)(int ranks);
    size_t ones_from;
    size_t bytes_per_thread;  ///< Of a launch, which has as many threads as it needs.
    unsigned most_blocks;     ///< 0: as many as the device keeps resident.
    size_t at_once;           ///< The most bytes of one launch; 0: any.
    /// A call of more than `above` bytes, and up to `up_to`, takes it without being asked.
    size_t (*above)(int ranks);
    size_t (*up_to)(int ranks);
    /// Null if it was not compiled for that.
    const struct symm_kernel* (*kernel)(int type, int ranks);
    void (*fill)(const struct symm_launch* launch, void* parameters);
};

/// The object's one function: its `number`-th algorithm, counted from 0; null behind the last, and
/// for a version that it does not know.
typedef const struct symm_algorithm* (*symm_algorithms_function)(unsigned version, unsigned number);
#ifdef __cplusplus
}
#endif
