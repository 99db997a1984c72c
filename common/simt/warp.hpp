#pragma once
/// \file
/// Groups of threads that are smaller than a block: the warp, and a span of warps with a barrier of
/// its own. Like ThreadBlock, on a GPU and on the host.
///
/// The threads of a warp can exchange values without memory: a shuffle reads another lane's
/// register, a vote collects one bit from each lane. All lanes of the warp call each of them
/// together. (A lane is a thread of a warp.)
///
/// Several spans of warps can work in one block at the same time, for example one that sends and
/// one that receives. They must not call ThreadBlock::sync(), which waits for all threads of the
/// block. A WarpSpan uses one of the block's 16 named barriers instead.
///
/// Source: CUDA C++ Programming Guide, "Cooperative Groups" (thread_block_tile), "Warp Shuffle
/// Functions"; PTX ISA, `bar.sync`.

#include <cstdint>
#include <cstring>

#include "common/simt/thread_block.hpp"

namespace symm::simt {

/// The warp that the calling thread belongs to. The last warp of a block may have fewer than 32
/// lanes.
class Warp {
public:
    static constexpr unsigned kSize = kWarpSize;

    __host__ __device__ explicit Warp(const ThreadBlock& block) : block_(block) {}

    /// This thread's lane, 0 to size() - 1.
    __host__ __device__ unsigned thread_rank() const { return block_.thread_rank() % kSize; }
    /// Lanes of this warp.
    __host__ __device__ unsigned size() const {
        const unsigned rest = block_.size() - meta_group_rank() * kSize;
        return rest < kSize ? rest : kSize;
    }
    /// The number of this warp in its block.
    __host__ __device__ unsigned meta_group_rank() const { return block_.thread_rank() / kSize; }

    /// Waits for all lanes; afterwards all see what each wrote before.
    __host__ __device__ void sync() const {
        NV_IF_TARGET(NV_IS_DEVICE, (__syncwarp(mask());),
                     (block_.host().sync_warp(meta_group_rank());))
    }
    /// The `value` of lane `source`, which is below size(). T has 4 or 8 bytes.
    template <class T>
    __host__ __device__ T shfl(T value, unsigned source) const {
        NV_IF_ELSE_TARGET(NV_IS_DEVICE,
                          (return __shfl_sync(mask(), value, static_cast<int>(source));),
                          (return host_shfl(value, source);))
    }
    /// A bit per lane: 1 where it voted true.
    __host__ __device__ std::uint32_t ballot(bool vote) const {
        NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return __ballot_sync(mask(), vote);),
                          (return host_ballot(vote);))
    }
    /// Whether all lanes voted true.
    __host__ __device__ bool all(bool vote) const { return ballot(!vote) == 0; }

private:
    /// A bit for each lane there is.
    __host__ __device__ std::uint32_t mask() const {
        return size() == kSize ? 0xffffffffU : (1U << size()) - 1;
    }
    /// On the host: a value per lane.
    __host__ std::uint64_t* exchange() const {
        return &block_.host().exchange[meta_group_rank() * kSize];
    }

    /// Until all lanes have stored, or loaded, such a value.
    __host__ void host_wait() const { block_.host().exchange_warp(meta_group_rank()); }

    template <class T>
    __host__ T host_shfl(T value, unsigned source) const {
        static_assert(sizeof(T) == 4 || sizeof(T) == 8);
        std::memcpy(&exchange()[thread_rank()], &value, sizeof(T));
        host_wait();
        T result;
        std::memcpy(&result, &exchange()[source], sizeof(T));
        host_wait();  // no lane writes before all have read
        return result;
    }
    __host__ std::uint32_t host_ballot(bool vote) const {
        exchange()[thread_rank()] = vote ? 1 : 0;
        host_wait();
        std::uint32_t votes = 0;
        for (unsigned lane = 0; lane < size(); ++lane) {
            votes |= (exchange()[lane] == 1 ? 1U : 0U) << lane;  // not of one that has returned
        }
        host_wait();
        return votes;
    }

    ThreadBlock block_;
};

/// Some consecutive warps of a block, with a barrier of their own.
class WarpSpan {
public:
    /// `barrier` is 1 to 15, and no other span of the block uses it (0 is ThreadBlock::sync()'s).
    /// The block has at least `first + warps` whole warps. Only their threads call the members.
    __host__ __device__ WarpSpan(const ThreadBlock& block, unsigned first, unsigned warps,
                                 unsigned barrier)
        : block_(block), first_(first), warps_(warps), barrier_(barrier) {}

    /// This thread's number in the span, 0 to size() - 1.
    __host__ __device__ unsigned thread_rank() const {
        return block_.thread_rank() - first_ * kWarpSize;
    }
    __host__ __device__ unsigned size() const { return warps_ * kWarpSize; }
    /// Waits for all threads of the span; afterwards all see what each wrote before.
    __host__ __device__ void sync() const {
        NV_IF_TARGET(NV_IS_DEVICE,
                     (asm volatile("bar.sync %0, %1;" ::"r"(barrier_), "r"(size())
                                   : "memory");),
                     (block_.host().sync_named(barrier_, size());))
    }

    /// The warp of the calling thread.
    __host__ __device__ Warp warp() const { return Warp(block_); }

private:
    ThreadBlock block_;
    unsigned first_;
    unsigned warps_;
    unsigned barrier_;
};

/// The warp of the calling thread, whatever its group.
__host__ __device__ inline Warp warp_of(const ThreadBlock& block) {
    return Warp(block);
}
__host__ __device__ inline Warp warp_of(const WarpSpan& span) {
    return span.warp();
}

}  // namespace symm::simt
