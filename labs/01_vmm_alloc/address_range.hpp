#pragma once
/// \file
/// The owner of a range of virtual addresses, without memory.
///
/// `cuMemAddressReserve` reserves addresses in the one address space that the host and all GPUs of
/// a process share. No memory is mapped there yet: a load or store faults, on the host and on a
/// GPU. Addresses are cheap (a process has 2^47 of them), so a program may reserve far more than it
/// will ever use. That is how a buffer grows in place, and how a rank computes the address of a
/// peer's memory.
///
/// Source: CUDA Driver API, cuMemAddressReserve, cuMemAddressFree.

#include <cuda.h>

#include <cstddef>

#include "common/sys/owner.hpp"

namespace symm {

/// Owns one reservation. Move-only; base 0 if empty. All mappings in it must be unmapped first, so
/// declare the range before its Mappings.
class AddressRange : public Owner<AddressRange, Sized<CUdeviceptr>> {
public:
    AddressRange() = default;

    /// Reserves `bytes` (a multiple of the granularity) at an address that is a multiple of
    /// `alignment` (a power of two; 0: the driver's default). Throws CudaError.
    explicit AddressRange(std::size_t bytes, std::size_t alignment = 0);

    /// Becomes the owner of a reservation: exactly what one call of cuMemAddressReserve returned.
    static AddressRange adopt(CUdeviceptr base, std::size_t bytes);

    /// The first address; 0 when empty.
    CUdeviceptr base() const { return value_.handle; }
    std::size_t size() const { return value_.bytes; }
    CUdeviceptr end() const { return base() + size(); }

    /// cuMemAddressFree, which the driver refuses while something is mapped in the range.
    static void give_back(const Sized<CUdeviceptr>& range);

private:
    using Owner::Owner;
};

}  // namespace symm
