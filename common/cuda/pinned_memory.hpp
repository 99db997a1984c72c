#pragma once
/// \file
/// The owner of page-locked host memory that every GPU can address.

#include <cuda.h>

#include <cstddef>

#include "common/sys/owner.hpp"

namespace symm {

/// Owns `bytes` of zeroed, page-locked host memory; with unified addressing its address is the same
/// on the host and on every device. Move-only. Needs a current context.
class PinnedMemory : public Owner<PinnedMemory, Sized<void*>> {
public:
    explicit PinnedMemory(std::size_t bytes);

    void* data() const { return value_.handle; }
    std::size_t size() const { return value_.bytes; }
    CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(data()); }
    template <class T>
    T* as() const {
        return static_cast<T*>(data());
    }
    static void give_back(const Sized<void*>& memory);
};

}  // namespace symm
