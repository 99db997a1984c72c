#pragma once
// An AllReduce in which data is its own flag, after TensorRT-LLM's Lamport kernel (README.md): a
// word that is -0 has not come. Three buffers take turns.
//
// | call f of rank r                   | of what                     | order                      |
// |------------------------------------|-----------------------------|----------------------------|
// | each thread reads `flag`, `dirty`  | its rank's                  | plain: call f-1 wrote them |
// | `__syncthreads()`, thread 0 adds 1 | its rank's `counter`        | release: has read them     |
// | each thread pushes its packs       | all ranks' `words[f % 3]`   | relaxed                    |
// | clears what call f-1 has used      | its rank's `words[(f-1)%3]` | relaxed: for call f+2      |
// | polls until all words have come    | its rank's `words[f % 3]`   | relaxed                    |
// | one thread: polls for all blocks   | its rank's `counter`        | acquire: all have read     |
// | then writes for call f+1           | `flag`, `dirty`, `counter`  | plain                      |

#include <cmath>
#include <cuda/atomic>

#include "tools/explore/foreign/wait_until.cuh"

constexpr int kMostRanks = 4;
constexpr int kBuffers = 3;
constexpr int kWords = 2;  // of a pack. The original's has four
constexpr int kMostWords = 32;
constexpr float kNotCome = -0.0F;

/// Each rank has one, which all ranks reach. All words are kNotCome before the first call.
struct Buffers {
    float words[kBuffers][kMostWords];  // [rank that writes][pack][word], by the call's size
};

/// Each rank has one of its own. Zeroed before the first call.
struct State {
    unsigned counter;  // blocks that have read flag and dirty
    int flag;          // the call's buffer
    int dirty;         // packs that the call before has used
};

struct Ranks {
    Buffers* buffers[kMostRanks];
    State* state;  // this rank's
    int rank;      // this one
    int count;
};

using Counter = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

__device__ inline bool has_come(float word) {
    return word != 0 || !std::signbit(word);
}

__device__ inline float load(const float* p) {
    return *static_cast<const volatile float*>(p);
}

__device__ inline void store(float* p, float word) {
    *static_cast<volatile float*>(p) = word;
}

/// `kEarly`: the next kernel may start once this one has, and not only at its end.
template <bool kEarly>
__global__ void all_reduce(Ranks ranks, const float* in, float* out, int packs) {
    cudaGridDependencySynchronize();
    if (kEarly) {
        cudaTriggerProgrammaticLaunchCompletion();
    }
    State& state = *ranks.state;
    const int flag = state.flag;
    const int dirty = state.dirty;
    __syncthreads();
    if (threadIdx.x == 0) {
        Counter(state.counter).fetch_add(1, cuda::memory_order_release);
    }

    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    const int stride = gridDim.x * blockDim.x;
    for (int i = first; i < packs; i += stride) {
        for (int w = 0; w < kWords; ++w) {
            const float given = in[i * kWords + w];
            const float word = has_come(given) ? given : 0;
            for (int r = 0; r < ranks.count; ++r) {
                store(&ranks.buffers[r]->words[flag][(ranks.rank * packs + i) * kWords + w], word);
            }
        }
    }

    Buffers& mine = *ranks.buffers[ranks.rank];
    for (int i = first; i < dirty; i += stride) {
        for (int w = 0; w < kWords; ++w) {
            store(&mine.words[(flag + kBuffers - 1) % kBuffers][i * kWords + w], kNotCome);
        }
    }

    for (int i = first; i < packs; i += stride) {
        float words[kMostRanks][kWords];
        wait_until([&] {
            bool all_have_come = true;
            for (int r = 0; r < ranks.count; ++r) {
                for (int w = 0; w < kWords; ++w) {
                    words[r][w] = load(&mine.words[flag][(r * packs + i) * kWords + w]);
                    all_have_come &= has_come(words[r][w]);
                }
            }
            return all_have_come;
        });
        for (int w = 0; w < kWords; ++w) {
            float sum = 0;
            for (int r = 0; r < ranks.count; ++r) {
                sum += words[r][w];
            }
            out[i * kWords + w] = sum;
        }
    }

    if (first == 0) {
        const unsigned blocks = gridDim.x;
        wait_until(
            [&] { return Counter(state.counter).load(cuda::memory_order_acquire) == blocks; });
        state.flag = (flag + 1) % kBuffers;
        state.dirty = ranks.count * packs;
        state.counter = 0;
    }
    if (!kEarly) {
        cudaTriggerProgrammaticLaunchCompletion();
    }
}
