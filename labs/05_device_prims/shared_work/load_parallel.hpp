#pragma once
/// \file
/// How a kernel begins: data that all its threads read many times is copied to shared memory.
/// Several structs are copied at the same time, each by different warps, and one sync ends all the
/// copies (load_args). Explored: `./lab explore load_args`.
///
/// | who             | copies                      | from                                    |
/// |-----------------|-----------------------------|-----------------------------------------|
/// | warp 0          | the communicator            | the GPU's memory, or the parameters     |
/// | warp 1          | the block's channel         | the GPU's memory                        |
/// | all other warps | the first items of the work | the parameters, or pinned host memory   |
/// | all threads     | nothing more: `block.sync()`, so that no thread reads half a copy |              |

#include <type_traits>

#include "common/simt/pack.hpp"
#include "common/simt/thread_block.hpp"

namespace symm {

/// Consecutive threads of a block, as a group without a barrier.
struct ThreadSpan {
    unsigned first;  ///< Its first thread's number in the block.
    unsigned count;
    unsigned rank;  ///< The calling thread's number in the block.

    __host__ __device__ unsigned thread_rank() const { return rank - first; }
    __host__ __device__ unsigned size() const { return count; }
};

/// Copies `count` structs with all threads of the group. A group has thread_rank() and size(): a
/// simt::ThreadBlock or a ThreadSpan. Does not sync: the caller syncs before any
/// thread reads, once for several copies.
template <class T, class Group>
__host__ __device__ void load_parallel(const Group& group, T* shared, const T* source,
                                       unsigned count = 1) {
    static_assert(std::is_trivially_copyable_v<T>, "the struct is copied as bytes");
    static_assert(alignof(T) % sizeof(simt::Pack16) == 0,
                  "the struct is copied 16 bytes at a time: declare it alignas(16)");
    auto* to = reinterpret_cast<simt::Pack16*>(shared);
    const auto* from = reinterpret_cast<const simt::Pack16*>(source);
    const unsigned packs = count * static_cast<unsigned>(sizeof(T) / sizeof(simt::Pack16));
    for (unsigned i = group.thread_rank(); i < packs; i += group.size()) {
        to[i] = from[i];
    }
}

/// A block's state in shared memory. All three are declared alignas(16).
template <class Comm, class Channel, class Work, unsigned kWork>
struct BlockState {
    Comm comm;
    Channel channel;
    Work work[kWork];  ///< As many items as are loaded at a time.
};

/// Loads a block's state, and syncs. All threads of the block call it, before anything else.
/// `channel` is the block's own; `batch` is a WorkBatch.
template <class Comm, class Channel, class Work, unsigned kWork, class Batch>
__host__ __device__ void load_args(const simt::ThreadBlock& block,
                                   BlockState<Comm, Channel, Work, kWork>& state, const Comm* comm,
                                   const Channel* channel, const Batch& batch) {
    constexpr unsigned kWarp = simt::kWarpSize;
    const unsigned rank = block.thread_rank();
    if (block.size() <= 2 * kWarp) {  // no warps left for the work: one copy after the other
        load_parallel(block, &state.comm, comm);
        load_parallel(block, &state.channel, channel);
        batch.load(block, state.work);
    } else if (rank < kWarp) {
        load_parallel(ThreadSpan{0, kWarp, rank}, &state.comm, comm);
    } else if (rank < 2 * kWarp) {
        load_parallel(ThreadSpan{kWarp, kWarp, rank}, &state.channel, channel);
    } else {
        batch.load(ThreadSpan{2 * kWarp, block.size() - 2 * kWarp, rank}, state.work);
    }
    block.sync();
}

}  // namespace symm
