#pragma once
// An AllReduce of a few ranks with flags in their memory, as serving engines have one: plain CUDA,
// for nvcc. Each rank sums a part of all inputs, and then copies the parts that the others summed.

#include <cstdint>
#include <cuda/atomic>

constexpr int kMostRanks = 8;
constexpr int kMostBlocks = 36;

/// Each rank has one, which all ranks reach. Zeroed before the first call.
struct Flags {
    std::uint32_t began[kMostBlocks][kMostRanks];   // [block][rank that writes]: its call
    std::uint32_t summed[kMostBlocks][kMostRanks];  // [block][rank that writes]: its call
    std::uint32_t calls[kMostBlocks];               // used by its own rank only
};

/// Memory of all ranks.
struct Ranks {
    Flags* flags[kMostRanks];
    const float* in[kMostRanks];
    float* sums[kMostRanks];  // a part of the result
    int rank;                 // this one
    int count;                // of ranks
};

using Flag = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;

/// `elements` is a multiple of the number of ranks. At least as many threads as ranks.
__global__ void all_reduce(Ranks ranks, float* out, int elements) {
    __shared__ std::uint32_t call;
    const int b = blockIdx.x;
    const int t = threadIdx.x;
    const int me = ranks.rank;
    if (t == 0) {
        call = ranks.flags[me]->calls[b] + 1;
    }
    __syncthreads();

    // All inputs are written, and all sums of the call before are read: that was before this
    // kernel, whose start publishes it.
    if (t < ranks.count) {
        *static_cast<volatile std::uint32_t*>(&ranks.flags[t]->began[b][me]) = call;
        while (Flag(ranks.flags[me]->began[b][t]).load(cuda::memory_order_acquire) != call) {
        }
    }
    __syncthreads();

    const int part = elements / ranks.count;
    for (int i = b * blockDim.x + t; i < part; i += gridDim.x * blockDim.x) {
        float sum = 0;
        for (int r = 0; r < ranks.count; ++r) {
            sum += ranks.in[r][me * part + i];
        }
        ranks.sums[me][i] = sum;
    }
    __syncthreads();

    // This block's sums are there, on all ranks.
    if (t < ranks.count) {
        Flag(ranks.flags[t]->summed[b][me]).store(call, cuda::memory_order_release);
        while (Flag(ranks.flags[me]->summed[b][t]).load(cuda::memory_order_acquire) != call) {
        }
    }
    __syncthreads();

    for (int i = b * blockDim.x + t; i < part; i += gridDim.x * blockDim.x) {
        for (int r = 0; r < ranks.count; ++r) {
            out[r * part + i] = ranks.sums[r][i];
        }
    }
    if (t == 0) {
        ranks.flags[me]->calls[b] = call;
    }
}
