#pragma once
// A barrier of GPUs and two kernels that need it, after DeepEP (README.md).
//
// | barrier_block(): thread p of rank r | of what          | order                             |
// |-------------------------------------|------------------|-----------------------------------|
// | `__syncthreads()`, fence            |                  | publishes what the block has done |
// | adds kArrived                       | own `signals[p]` | relaxed: rank p has yet to come   |
// | subtracts kArrived                  | p's `signals[r]` | relaxed: rank r has come          |
// | polls until it is <= 0              | own `signals[p]` | relaxed                           |
// | fence, `__syncthreads()`            |                  | what rank p has done may be read  |

#include <cuda/atomic>

#include "tools/explore/foreign/wait_until.cuh"

constexpr int kMostRanks = 4;
constexpr int kPerRank = 2;  // experts of a rank, and words that a rank sends to another
constexpr int kArrived = 1024;

/// Each rank has one, which all ranks reach. Zeroed before the first kernel.
struct Buffer {
    int signals[kMostRanks];           // [peer]
    int words[kMostRanks * kPerRank];  // [rank that writes][index]: counts, then a queue
};

struct Ranks {
    Buffer* buffers[kMostRanks];
    int rank;  // this one
    int count;
};

__device__ inline void memory_fence() {
    cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_system);
}

__device__ inline int ld_volatile(const int* p) {
    return *static_cast<const volatile int*>(p);
}

/// One block of each rank calls it, with at least as many threads as ranks. `kSyncOnly`: the block
/// has nothing to publish.
template <bool kSyncOnly = false>
__device__ void barrier_block(const Ranks& ranks) {
    const int peer = threadIdx.x;
    if (!kSyncOnly) {
        __syncthreads();
        memory_fence();
    }
    if (peer < ranks.count) {
        int* const own = &ranks.buffers[ranks.rank]->signals[peer];
        atomicAdd_system(own, kArrived);
        atomicSub_system(&ranks.buffers[peer]->signals[ranks.rank], kArrived);
        wait_until([&] { return ld_volatile(own) <= 0; });
        memory_fence();
    }
    __syncthreads();
}

/// Tells each rank how many tokens its experts get, then clears the queue of the next kernel, which
/// lies in the same memory. `sent` is [rank][expert], `received` the sums for this rank's experts.
__global__ void notify(Ranks ranks, const int* sent, int* received) {
    const int t = threadIdx.x;
    int* const mine = ranks.buffers[ranks.rank]->words;
    barrier_block<true>(ranks);  // all ranks have left the kernel before
    if (t < ranks.count) {
        for (int e = 0; e < kPerRank; ++e) {
            ranks.buffers[t]->words[ranks.rank * kPerRank + e] = sent[t * kPerRank + e];
        }
    }
    barrier_block(ranks);
    if (t < kPerRank) {
        int sum = 0;
        for (int r = 0; r < ranks.count; ++r) {
            sum += mine[r * kPerRank + t];
        }
        received[t] = sum;
    }
    __syncthreads();
    for (int i = t; i < ranks.count * kPerRank; i += blockDim.x) {
        mine[i] = 0;
    }
    barrier_block(ranks);  // the queues of all ranks are empty
}

/// Sends each rank some words, all at least 0, and receives theirs. A word is its own flag: 0 means
/// that it has not come.
__global__ void dispatch(Ranks ranks, const int* sent, int* received) {
    const int peer = threadIdx.x;
    for (int k = 0; k < kPerRank && peer < ranks.count; ++k) {
        int* const to = &ranks.buffers[peer]->words[ranks.rank * kPerRank + k];
        *static_cast<volatile int*>(to) = ~sent[peer * kPerRank + k];
    }
    for (int k = 0; k < kPerRank && peer < ranks.count; ++k) {
        const int i = peer * kPerRank + k;
        const int* const from = &ranks.buffers[ranks.rank]->words[i];
        int word = 0;
        wait_until([&] { return (word = ld_volatile(from)) != 0; });
        received[i] = ~word;
    }
}
