#pragma once
/// \file
/// The owner of a small piece of device memory from cuMemAlloc, for what no lab teaches: flags, counters,
/// results of checks.

#include <cuda.h>

#include <cstddef>
#include <utility>

namespace symm {

/// Owns `bytes` of zeroed memory on the current context's device. Move-only.
class DeviceMemory {
public:
    explicit DeviceMemory(std::size_t bytes);
    DeviceMemory(DeviceMemory&& other) noexcept
        : address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}
    DeviceMemory& operator=(DeviceMemory&& other) noexcept {
        std::swap(address_, other.address_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~DeviceMemory();

    CUdeviceptr address() const { return address_; }
    std::size_t size() const { return bytes_; }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(address_);
    }

private:
    CUdeviceptr address_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace symm
