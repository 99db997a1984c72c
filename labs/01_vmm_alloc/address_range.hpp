#pragma once
/// \file
/// The owner of a range of virtual addresses: room, without memory.
///
/// `cuMemAddressReserve` sets addresses aside in the one address space that the host and all GPUs
/// of a process share. Nothing stands behind them: touching one faults, on the host as on a GPU.
/// Addresses are cheap (a process has 2^47 bytes of them), so a program may reserve far more than
/// it will ever fill: that is how a buffer grows in place, and how every rank finds a peer's memory
/// by arithmetic.
///
/// Source: CUDA Driver API, cuMemAddressReserve, cuMemAddressFree.

#include <cuda.h>

#include <cstddef>
#include <utility>

namespace symm {

/// Owns one reservation. Move-only; empty has base 0. Whatever is mapped in it must have been
/// unmapped before it goes: declare it before the Mappings that stand in it.
class AddressRange {
public:
    /// Owns nothing.
    AddressRange() = default;

    /// Reserves `bytes` (a multiple of the granularity) at an address that is a multiple of
    /// `alignment` (a power of two; 0 for the driver's own). Throws CudaError.
    explicit AddressRange(std::size_t bytes, std::size_t alignment = 0);

    /// Becomes the owner of a reservation that was made elsewhere: exactly what one call of
    /// cuMemAddressReserve returned.
    static AddressRange adopt(CUdeviceptr base, std::size_t bytes);

    AddressRange(AddressRange&& other) noexcept
        : base_(std::exchange(other.base_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}
    AddressRange& operator=(AddressRange&& other) noexcept {
        std::swap(base_, other.base_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    AddressRange(const AddressRange&) = delete;
    AddressRange& operator=(const AddressRange&) = delete;
    ~AddressRange() { reset(); }

    /// The first address; 0 when empty.
    CUdeviceptr base() const { return base_; }
    /// Bytes reserved.
    std::size_t size() const { return bytes_; }
    /// The address behind the last.
    CUdeviceptr end() const { return base_ + bytes_; }
    explicit operator bool() const { return base_ != 0; }

    /// Frees the range now and throws CudaError where the driver refuses (something is still mapped
    /// in it). The range is then still owned, and the destructor tries once more.
    void free();
    /// Gives the range to the caller, who calls cuMemAddressFree with base and size.
    [[nodiscard]] CUdeviceptr release();
    /// Frees the range now; a failure is logged.
    void reset() noexcept;

private:
    CUdeviceptr base_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace symm
