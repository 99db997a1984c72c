#pragma once
/// \file
/// The memory of all ranks, side by side in one range of addresses.
///
/// A peer's address is base + rank * stride, without a table: that is what "symmetric" means. Every
/// process has such a range, each at its own base, with the same physical memory at the same
/// offset. NCCL builds the same for windows in src/dev_runtime.cc (`lsaFlatBase`, `bigSize`).
///
/// How it is built (symmetric_range.cpp follows this table). Each step is collective: if it fails
/// on one rank, all ranks throw and give back what they have.
///
/// | step           | what a rank does                                         | exchanged          |
/// |----------------|----------------------------------------------------------|--------------------|
/// | 1 memory       | asks which kind of handle all devices have; creates      | FABRIC support     |
/// |                | segments that can be exported as that kind and as file   |                    |
/// |                | descriptors, or finds the segments at its pointer        |                    |
/// | 2 descriptions | computes the stride; falls back to file descriptors if   | sizes, what memory |
/// |                | one rank's memory was not created for FABRIC             | was created for    |
/// | 3 addresses    | reserves ranks * stride                                  | nothing            |
/// | 4 mappings     | maps rank r's segments from base + r * stride on         | handles            |
/// | 5 access       | gives its device access to the mappings                  | nothing            |
///
/// Ranks that are threads need no handles, and share one range: with several mappings of the same
/// memory, ThreadSanitizer would not see that two addresses are the same. In step 3 rank 0 reserves
/// for all, and the others find the range by its number (common/ranks/registry.hpp).

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "common/ranks/rank.hpp"
#include "labs/03_ipc/handle_kind.hpp"
#include "labs/03_ipc/symmetric_pointer.hpp"

namespace symm {

/// Owns this rank's mappings of the symmetric memory. Move-only.
///
/// Construction is collective: all ranks construct their ranges in the same order. Destruction is
/// not: memory stays as long as any rank has it mapped. Before it destroys the range, a rank waits
/// for its own kernels that use it. Any thread may construct and destroy it, with any
/// context current or none.
class SymmetricRange {
public:
    SymmetricRange() = default;

    /// `bytes` of new memory on each rank's device, the same on every rank, not zeroed. When it
    /// returns, the memory of all ranks may be used. If it fails on one rank, it throws on all
    /// ranks, with that rank's error, and leaves nothing behind; the bootstrap can still be used.
    SymmetricRange(Rank& rank, std::size_t bytes);

    /// Shares memory that every rank has already, as ncclCommWindowRegister does. The memory must
    /// be from cuMemCreate. If ranks are processes, its requestedHandleTypes must have POSIX file
    /// descriptors among them, as lab 01 creates it. `pointer` is where this rank's memory starts
    /// (not 0); `bytes` is the same on every rank. Whole segments are shared: if the pointer lies
    /// inside one, lead() is its offset. The caller still owns the memory, and may free it before
    /// or after the range.
    SymmetricRange(Rank& rank, CUdeviceptr pointer, std::size_t bytes);

    SymmetricRange(SymmetricRange&&) = default;
    SymmetricRange& operator=(SymmetricRange&&) = default;

    /// The range's first address in this process: the memory of rank 0.
    CUdeviceptr base() const { return base_; }
    /// The distance from one rank's memory to the next, in bytes. A multiple of the granularity.
    std::size_t stride() const { return stride_; }
    /// The requested size of each rank's memory, in bytes.
    std::size_t size() const { return bytes_; }
    /// The offset in bytes of this rank's memory from the start of its first segment; ranks may
    /// differ. The addresses below are those of the segment.
    std::size_t lead() const { return lead_; }
    /// The address of a rank's memory in this process.
    CUdeviceptr peer(int rank) const { return base_ + static_cast<std::size_t>(rank) * stride_; }
    /// The address of this rank's own memory.
    CUdeviceptr local() const { return peer(rank_); }
    /// The place `offset` bytes into every rank's memory, for kernels.
    template <class T>
    SymmetricPointer<T> pointer(std::size_t offset = 0) const {
        return {at<T>(0, offset), stride_};
    }
    /// The same place in one rank's memory.
    template <class T>
    T* at(int rank, std::size_t offset = 0) const {
        return reinterpret_cast<T*>(peer(rank) + offset);
    }
    /// The kind of handle that was sent and, if it is not FABRIC, the reason.
    const HandleChoice& handles() const { return handles_; }
    explicit operator bool() const { return mapped_ != nullptr; }

private:
    struct Mapped;

    /// Shares the memory that this rank has at `existing`, or new memory.
    SymmetricRange(Rank& rank, std::optional<CUdeviceptr> existing, std::size_t bytes);

    std::shared_ptr<Mapped> mapped_;  // one for all ranks that are threads
    HandleChoice handles_;
    CUdeviceptr base_ = 0;
    std::size_t stride_ = 0;
    std::size_t bytes_ = 0;
    std::size_t lead_ = 0;
    int rank_ = 0;
};

}  // namespace symm
