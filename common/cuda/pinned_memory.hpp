#pragma once
/// \file
/// The owner of page-locked host memory that every GPU can address.

#include <cuda.h>

#include <cstddef>
#include <utility>

namespace symm {

/// Owns `bytes` of zeroed, page-locked host memory; with unified addressing its address is the same
/// on the host and on every device. Move-only. Needs a current context.
class PinnedMemory {
public:
    explicit PinnedMemory(std::size_t bytes);
    PinnedMemory(PinnedMemory&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    PinnedMemory& operator=(PinnedMemory&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    ~PinnedMemory();

    void* data() const { return data_; }
    std::size_t size() const { return bytes_; }
    CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(data_); }
    template <class T>
    T* as() const {
        return static_cast<T*>(data_);
    }

private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace symm
