#pragma once
/// \file
/// The work of one launch, as its kernel sees it: a parameter that holds the items, or their place
/// in a ring (work_fifo.hpp). A kernel does the same with both:
///
///     batch.load(block, shared);                  // the first items, into shared memory
///     block.sync();                               // (load_args does both, beside other loads)
///     batch.for_each(block, shared, [&](const Work& work) { ...; return go_on; });
///
/// Source: NCCL's loadWorkBatchToShmem in src/device/common.h, ncclDevWorkStorageType in
/// src/include/device.h.

#include <cstddef>
#include <cstdint>

#include "common/simt/atomic.hpp"
#include "labs/05_device_prims/shared_work/load_parallel.hpp"

namespace symm {

/// Bytes of items in a launch's parameters. Every CUDA version allows 4 KB for all parameters of a
/// kernel (since 12.1, 32 KB); half of them are left to the kernel's other parameters.
inline constexpr std::size_t kWorkArgsBytes = 2048;

/// A kernel's parameter. `Work` is trivially copyable, and declared alignas(16).
template <class Work>
struct WorkBatch {
    static constexpr std::uint32_t kArgs = kWorkArgsBytes / sizeof(Work);
    static_assert(kArgs > 0, "an item is larger than kWorkArgsBytes");

    std::uint32_t count;      ///< Items.
    std::uint32_t first;      ///< The number of the first one, as the ring counts.
    std::uint32_t entries;    ///< Entries of the ring: a power of two.
    std::uint32_t channels;   ///< Words of `consumed`.
    const Work* ring;         ///< Null: the items are in `args`.
    std::uint32_t* consumed;  ///< Items loaded so far, per channel, in pinned memory.
    Work args[kArgs];

    /// Copies the items from number `from` of the batch on, as many as there is room for. All
    /// threads of the group call it; no sync.
    template <class Group, unsigned kRoom>
    __host__ __device__ void load(const Group& group, Work (&shared)[kRoom],
                                  std::uint32_t from = 0) const {
        const std::uint32_t items = loaded<kRoom>(from);
        // Two separate loads: the compiler then knows which one is from the parameters.
        if (ring == nullptr) {
            load_parallel(group, shared, args + from, items);
            return;
        }
        const std::uint32_t at = (first + from) & (entries - 1);
        const std::uint32_t to_end = items < entries - at ? items : entries - at;
        load_parallel(group, shared, ring + at, to_end);
        load_parallel(group, shared + to_end, ring, items - to_end);  // the ring begins again
    }

    /// Calls `run(item)` for all items, in order, after load() and a sync have brought the first
    /// ones into `shared`. All threads of the block call it. `run` returns true to go on, or false
    /// on all threads to leave (AbortBarrier); for_each() returns its last answer.
    template <unsigned kRoom, class Run>
    __host__ __device__ bool for_each(const simt::ThreadBlock& block, Work (&shared)[kRoom],
                                      Run&& run) const {
        for (std::uint32_t from = 0; from < count; from += kRoom) {
            if (from > 0) {
                block.sync();
                load(block, shared, from);
                block.sync();
            }
            const std::uint32_t items = loaded<kRoom>(from);
            release(block, from + items);
            for (std::uint32_t i = 0; i < items; ++i) {
                if (!run(shared[i])) {
                    release(block, count);  // the block will not read the rest
                    return false;
                }
            }
        }
        return true;
    }

private:
    /// Items that one load() brings, from number `from` on.
    template <unsigned kRoom>
    __host__ __device__ std::uint32_t loaded(std::uint32_t from) const {
        return count - from < kRoom ? count - from : kRoom;
    }

    /// Tells the host that this block no longer reads the batch's first `items` items.
    __host__ __device__ void release(const simt::ThreadBlock& block, std::uint32_t items) const {
        if (ring == nullptr || block.thread_rank() != 0) {
            return;
        }
        for (unsigned c = block.group_index(); c < channels; c += block.dim_blocks()) {
            // Release (3): the loads, by all threads before the sync, come first.
            simt::store(&consumed[c], first + items, simt::Order::kRelease);
        }
    }
};

}  // namespace symm
