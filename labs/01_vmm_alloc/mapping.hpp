#pragma once
/// \file
/// The owner of a mapping: physical memory at an address.
///
/// `cuMemMap` places the memory at the addresses, but gives no device access: until
/// `cuMemSetAccess` names a device (or the host), every load and store faults.
///
/// Source: CUDA Driver API, cuMemMap, cuMemUnmap.

#include <cuda.h>

#include <cstddef>

#include "common/sys/owner.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// Owns one mapping. Move-only; address 0 if empty. The mapping is a reference to the physical
/// memory, so the PhysicalMemory may be closed first. Unmapping does not wait for kernels that
/// still use the addresses: synchronise first.
class Mapping : public Owner<Mapping, Sized<CUdeviceptr>> {
public:
    Mapping() = default;

    /// Maps the first `bytes` of `memory` at `at`. All of [at, at + bytes) must be reserved, and
    /// nothing may be mapped there yet. Address and size are multiples of the granularity. Throws
    /// CudaError.
    Mapping(CUdeviceptr at, std::size_t bytes, const PhysicalMemory& memory);

    /// The address of the memory; 0 when empty.
    CUdeviceptr address() const { return value_.handle; }
    std::size_t size() const { return value_.bytes; }

    static void give_back(const Sized<CUdeviceptr>& mapping);
};

}  // namespace symm
