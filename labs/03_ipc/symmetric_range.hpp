#pragma once
/// \file
/// One buffer of every rank, side by side in one range of addresses.
///
///     base                base + stride       base + 2*stride     base + 3*stride
///     |                   |                   |                   |
///     +-------------------+-------------------+-------------------+-------------------+
///     | rank 0's memory   | rank 1's memory   | rank 2's memory   | rank 3's memory   |
///     +-------------------+-------------------+-------------------+-------------------+
///
/// A peer's address is arithmetic, not a table: that is what "symmetric" means. Every rank has such
/// a range (its base may differ from process to process) with the same physical memory at the same
/// place. NCCL builds the same for windows in src/dev_runtime.cc (`lsaFlatBase`, `bigSize`).
///
/// Ranks that are threads share one range, made once: a second mapping of the same memory would
/// hide from ThreadSanitizer that two addresses are one place.

#include <cuda.h>

#include <cstddef>
#include <memory>

#include "common/ranks/rank.hpp"
#include "labs/03_ipc/handle_kind.hpp"

namespace symm {

/// Owns this rank's view of the symmetric memory. Move-only.
///
/// Construction is collective: all ranks, in the same order. Destruction is not: memory stays as
/// long as any rank has it mapped, so that a rank that leaves early takes nothing from the others.
/// Before it goes, a rank waits for its own kernels that use the range.
class SymmetricRange {
public:
    /// Owns nothing.
    SymmetricRange() = default;

    /// `bytes` of new memory on each rank's device, the same on every rank, not zeroed. When it
    /// returns, all ranks' memory may be used. Throws on all ranks where it fails on one, with the
    /// reason of the one, and leaves nothing behind; the rendezvous can still be used.
    SymmetricRange(Rank& rank, std::size_t bytes, Deadline deadline = Deadline::standard());

    /// Makes memory that every rank has already (from mem_alloc, a DeviceBuffer, ...: anything made
    /// by cuMemCreate) visible to all, as ncclCommWindowRegister does. `pointer` is where this
    /// rank's memory starts, and `bytes` the same on every rank; allocations of several segments
    /// are shared segment by segment. The memory remains the caller's, who may free it before or
    /// after.
    SymmetricRange(Rank& rank, CUdeviceptr pointer, std::size_t bytes,
                   Deadline deadline = Deadline::standard());

    SymmetricRange(SymmetricRange&&) noexcept;
    SymmetricRange& operator=(SymmetricRange&&) noexcept;
    ~SymmetricRange();

    /// The range's first address in this process: where rank 0's memory is.
    CUdeviceptr base() const { return base_; }
    /// From one rank's memory to the next, bytes. A multiple of the granularity.
    std::size_t stride() const { return stride_; }
    /// Bytes of each rank that were asked for.
    std::size_t size() const { return bytes_; }
    /// Ranks.
    int ranks() const { return ranks_; }
    /// Where a rank's memory is in this process.
    CUdeviceptr peer(int rank) const { return base_ + static_cast<std::size_t>(rank) * stride_; }
    /// Where this rank's own memory is.
    CUdeviceptr local() const { return peer(rank_); }
    /// The address `offset` bytes into a rank's memory, as a pointer for kernels.
    template <class T>
    T* at(int rank, std::size_t offset = 0) const {
        return reinterpret_cast<T*>(peer(rank) + offset);
    }
    /// By which kind of handle the memory travelled, and why by no better one.
    const HandleChoice& handles() const { return handles_; }
    explicit operator bool() const { return base_ != 0; }

private:
    struct Owned;
    void build(Rank& rank, CUdeviceptr pointer, Deadline deadline);

    std::shared_ptr<Owned> owned_;  // in thread mode one for all ranks
    HandleChoice handles_;
    CUdeviceptr base_ = 0;
    std::size_t stride_ = 0;
    std::size_t bytes_ = 0;
    int rank_ = 0;
    int ranks_ = 0;
};

}  // namespace symm
