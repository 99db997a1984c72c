#pragma once
/// \file
/// The owner of a small piece of device memory from cuMemAlloc: flags, counters, results of checks.

#include <cuda.h>

#include <cstddef>

#include "common/sys/owner.hpp"

namespace symm {

/// Owns `bytes` of zeroed memory on the current context's device. Move-only.
class DeviceMemory : public Owner<DeviceMemory, Sized<CUdeviceptr>> {
public:
    explicit DeviceMemory(std::size_t bytes);

    CUdeviceptr address() const { return value_.handle; }
    std::size_t size() const { return value_.bytes; }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(address());
    }
    static void give_back(const Sized<CUdeviceptr>& memory);
};

}  // namespace symm
