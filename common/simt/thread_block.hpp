#pragma once
/// \file
/// The thread block that a kernel runs in, with the names of cooperative groups, on a GPU and on
/// the host.
///
/// A kernel of this repository is a struct of parameters with
/// `__host__ __device__ void operator()(const simt::ThreadBlock& block) const`. On a GPU the block
/// is the hardware's; on the host, a fiber plays each CUDA thread (emu/kernels/fibers.hpp) and
/// HostBlock holds what they share.
///
/// Source: CUDA C++ Programming Guide, "Cooperative Groups", class thread_block.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <nv/target>

namespace symm::simt {

/// Threads of a warp.
inline constexpr unsigned kWarpSize = 32;
/// Named barriers of a block; number 0 is ThreadBlock::sync()'s.
inline constexpr unsigned kNamedBarriers = 16;

/// The dynamic shared memory of a kernel's blocks: as the kernel specifies, or none.
template <class Kernel>
constexpr unsigned shared_bytes_of() {
    if constexpr (requires { Kernel::kSharedBytes; }) {
        return Kernel::kSharedBytes;
    } else {
        return 0;
    }
}

/// The memory of each device behind a multicast address (multimem.hpp), where the host can access
/// it, in the order in which the switch comes to it this time. None elsewhere.
struct MulticastCopies {
    static constexpr unsigned kMost = 16;
    void* at[kMost];
    unsigned count;
};

/// What a multimem function does there.
enum class SwitchAccess { kLoad, kStore, kAdd };

/// A block on the host, which the emulator or the explorer implements. No kernel sees it.
class HostBlock {
public:
    /// Waits until every thread of the block has called it; returns whether any voted true.
    virtual bool sync(bool vote) = 0;
    /// Waits until every thread of the warp has called it.
    virtual void sync_warp(unsigned warp) = 0;
    /// The same for a shuffle or a vote, which orders no accesses of memory.
    virtual void exchange_warp(unsigned warp) { sync_warp(warp); }
    /// Waits until `threads` threads have called it for this number.
    virtual void sync_named(unsigned number, unsigned threads) = 0;
    /// Waits until the work before this launch has ended.
    virtual void wait_for_predecessor() {}
    /// The launch after this one may start, as far as this block is concerned.
    virtual void launch_dependents() {}
    virtual MulticastCopies copies_of(const void* /*address*/, SwitchAccess /*access*/) {
        return {};
    }

    dim3 group_index{};                 ///< Which block of the grid this is.
    dim3 grid_dim{1, 1, 1};             ///< Blocks in the grid.
    unsigned size = 1;                  ///< Threads in the block.
    void* shared = nullptr;             ///< The block's dynamic shared memory.
    std::uint64_t* exchange = nullptr;  ///< A value per thread, for shuffles and votes.

protected:
    ~HostBlock() = default;
};

/// A one-dimensional block of threads (no kernel here has others). Cheap to copy; valid inside a
/// kernel.
class ThreadBlock {
public:
    ThreadBlock() = default;
    __host__ __device__ ThreadBlock(HostBlock* host, unsigned rank) : host_(host), rank_(rank) {}

    /// This thread's number in its block, 0 to size() - 1.
    __host__ __device__ unsigned thread_rank() const {
        NV_IF_TARGET(NV_IS_DEVICE, (return threadIdx.x;), (return rank_;))
    }
    /// Threads in the block.
    __host__ __device__ unsigned size() const {
        NV_IF_TARGET(NV_IS_DEVICE, (return blockDim.x;), (return host_->size;))
    }
    /// This block's number in the grid.
    __host__ __device__ unsigned group_index() const {
        NV_IF_TARGET(NV_IS_DEVICE, (return blockIdx.x;), (return host_->group_index.x;))
    }
    /// Blocks in the grid (cooperative groups: dim_blocks of the grid).
    __host__ __device__ unsigned dim_blocks() const {
        NV_IF_TARGET(NV_IS_DEVICE, (return gridDim.x;), (return host_->grid_dim.x;))
    }
    /// Waits for every thread of the block; afterwards all see what each wrote before.
    __host__ __device__ void sync() const {
        NV_IF_TARGET(NV_IS_DEVICE, (__syncthreads();), (host_->sync(false);))
    }
    /// Like sync(), and tells every thread whether any of them voted true.
    __host__ __device__ bool sync_or(bool vote) const {
        NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return __syncthreads_or(vote) != 0;),
                          (return host_->sync(vote);))
    }
    /// Waits until the work before this kernel in its stream has ended, and what that wrote can be
    /// seen. Only a dependent launch (LaunchOrder) starts before; others return at once. Call it
    /// before any access to memory.
    __host__ __device__ void wait_for_predecessor() const {
        NV_DISPATCH_TARGET(NV_PROVIDES_SM_90,
                           (asm volatile("griddepcontrol.wait;" ::
                                             : "memory");),
                           NV_IS_HOST, (host_->wait_for_predecessor();))
    }
    /// Lets the next kernel of the stream start, if that is a dependent launch, once a thread of
    /// each block has called it, or the block has ended. It orders nothing: what this kernel
    /// writes, also before the call, the next one sees only after its wait_for_predecessor().
    __host__ __device__ void launch_dependents() const {
        NV_DISPATCH_TARGET(NV_PROVIDES_SM_90,
                           (asm volatile("griddepcontrol.launch_dependents;" ::
                                             : "memory");),
                           NV_IS_HOST, (host_->launch_dependents();))
    }
    /// The block's dynamic shared memory, 16-byte aligned, as large as the launch asked for.
    template <class T>
    __host__ __device__ T* shared() const {
        NV_IF_TARGET(NV_IS_DEVICE,
                     (extern __shared__ uint4 symm_shared_memory[];
                      return reinterpret_cast<T*>(symm_shared_memory);),
                     (return static_cast<T*>(host_->shared);))
    }

    /// This thread's number in the whole grid.
    __host__ __device__ std::size_t grid_rank() const {
        return std::size_t{group_index()} * size() + thread_rank();
    }
    /// Threads in the whole grid.
    __host__ __device__ std::size_t grid_size() const { return std::size_t{dim_blocks()} * size(); }

    /// For Warp and WarpSpan (warp.hpp), on the host.
    __host__ HostBlock& host() const { return *host_; }

private:
    HostBlock* host_ = nullptr;
    unsigned rank_ = 0;
};

}  // namespace symm::simt
