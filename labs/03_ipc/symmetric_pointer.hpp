#pragma once
/// \file
/// One object in the memory of every rank: the form in which kernels get a symmetric range.
///
/// The objects lie `stride` bytes apart (symmetric_range.hpp), so a multiplication finds any
/// rank's object, and a kernel needs no table of addresses.
///
/// Source: NCCL's ncclSymPtr (src/include/nccl_device/ptr.h), a window and an offset.

#include <cuda_runtime.h>

#include <cstddef>

namespace symm {

/// A pointer to every rank's T, in the address space of this process.
template <class T>
struct SymmetricPointer {
    T* first;            ///< Rank 0's object.
    std::size_t stride;  ///< Bytes from one rank's object to the next.

    __host__ __device__ T* of(int rank) const {
        return reinterpret_cast<T*>(reinterpret_cast<char*>(first) +
                                    static_cast<std::size_t>(rank) * stride);
    }

    /// A member of the object.
    template <class Member, class Object = T>  // T may be a number
    __host__ __device__ SymmetricPointer<Member> member(Member Object::*which) const {
        return {&(first->*which), stride};
    }
};

/// Where `peer` comes among the peers of `rank`: memory for each peer has ranks - 1 places.
__host__ __device__ inline unsigned place_of(int peer, int rank) {
    return static_cast<unsigned>(peer - (peer > rank ? 1 : 0));
}

}  // namespace symm
