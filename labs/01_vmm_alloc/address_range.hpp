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

#include "common/sys/owner.hpp"

namespace symm {

/// Owns one reservation. Move-only; empty has base 0. Whatever is mapped in it must have been
/// unmapped before it goes: declare it before the Mappings that stand in it.
class AddressRange : public Owner<AddressRange, Sized<CUdeviceptr>> {
public:
    /// Owns nothing.
    AddressRange() = default;

    /// Reserves `bytes` (a multiple of the granularity) at an address that is a multiple of
    /// `alignment` (a power of two; 0 for the driver's own). Throws CudaError.
    explicit AddressRange(std::size_t bytes, std::size_t alignment = 0);

    /// Becomes the owner of a reservation that was made elsewhere: exactly what one call of
    /// cuMemAddressReserve returned.
    static AddressRange adopt(CUdeviceptr base, std::size_t bytes);

    /// The first address; 0 when empty.
    CUdeviceptr base() const { return value_.handle; }
    /// Bytes reserved.
    std::size_t size() const { return value_.bytes; }
    /// The address behind the last.
    CUdeviceptr end() const { return base() + size(); }

    /// cuMemAddressFree, which the driver refuses while something is mapped in the range.
    static void give_back(const Sized<CUdeviceptr>& range);

private:
    using Owner::Owner;
};

}  // namespace symm
