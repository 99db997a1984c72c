#pragma once
/// \file
/// The owner of a mapping: physical memory standing at an address.
///
/// `cuMemMap` joins the two halves. What it does not do is allow anybody in: until `cuMemSetAccess`
/// names a device (or the host), every access faults.
///
/// Source: CUDA Driver API, cuMemMap, cuMemUnmap.

#include <cuda.h>

#include <cstddef>
#include <utility>

#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// Owns one mapping and unmaps it. Move-only; empty has address 0. It keeps the physical memory
/// alive by itself: the PhysicalMemory may go first. It does not wait for kernels that still use
/// the addresses: synchronise first.
class Mapping {
public:
    /// Owns nothing.
    Mapping() = default;

    /// Maps the first `bytes` of `memory` at `at`, which lies with all its bytes inside a
    /// reservation where nothing is mapped yet. Address and size are multiples of the granularity.
    /// Throws CudaError.
    Mapping(CUdeviceptr at, std::size_t bytes, const PhysicalMemory& memory);

    Mapping(Mapping&& other) noexcept
        : address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(address_, other.address_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() { reset(); }

    /// Where the memory stands; 0 when empty.
    CUdeviceptr address() const { return address_; }
    /// Bytes mapped.
    std::size_t size() const { return bytes_; }
    explicit operator bool() const { return address_ != 0; }

    /// Unmaps now and throws CudaError where the driver refuses. The mapping is then still owned,
    /// and the destructor tries once more.
    void unmap();
    /// Leaves the memory mapped; the caller calls cuMemUnmap with address and size.
    [[nodiscard]] CUdeviceptr release();
    /// Unmaps now; a failure is logged.
    void reset() noexcept;

private:
    CUdeviceptr address_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace symm
