#pragma once
/// \file
/// The scalar accesses by which GPUs communicate: system scope, each with a named memory order.
///
/// On a GPU these are `ld.acquire.sys`, `st.release.sys` and the like (PTX ISA, "Memory Consistency
/// Model"); on the host the same order of the C++ model. System scope, because the other side is
/// another GPU or the host.

#include <cuda/atomic>
#include <nv/target>

#include "common/simt/back_off.hpp"
#include "common/simt/explored.hpp"

namespace symm::simt {

/// How an access is ordered with the others of its thread.
enum class Order {
    kRelaxed,  ///< No ordering: only this value is exchanged.
    kAcquire,  ///< A load: its thread's later accesses stay after it.
    kRelease,  ///< A store: a thread that acquires its value sees what came before it.
    /// A store early in a kernel that publishes earlier work of its stream: the end of that
    /// work released it, so on a GPU the store is relaxed. The C++ memory model has no such rule:
    /// on emulated GPUs, whose threads are host threads, the store is a release. (NCCL's symmetric
    /// kernels begin with a relaxed store too.)
    kReleasedByStream,
};

namespace detail {
/// The order as libcu++ names it.
__host__ __device__ constexpr cuda::std::memory_order native(Order order) {
    if (order == Order::kReleasedByStream) {
        NV_IF_ELSE_TARGET(
            NV_IS_DEVICE, (return cuda::std::memory_order_relaxed;),
            (return kExplored ? cuda::std::memory_order_relaxed : cuda::std::memory_order_release;))
    }
    return order == Order::kAcquire   ? cuda::std::memory_order_acquire
           : order == Order::kRelease ? cuda::std::memory_order_release
                                      : cuda::std::memory_order_relaxed;
}
template <class T>
__host__ __device__ auto reference(const T* pointer) {
    return cuda::atomic_ref<T, cuda::thread_scope_system>(*const_cast<T*>(pointer));
}
}  // namespace detail

/// Reads `*pointer`; `order` is kRelaxed or kAcquire.
template <class T>
__host__ __device__ T load(const T* pointer, Order order) {
    NV_IF_TARGET(NV_IS_HOST, (before_load();))
    return detail::reference(pointer).load(detail::native(order));
}

/// Writes `*pointer`; `order` is kRelaxed, kRelease or kReleasedByStream.
template <class T>
__host__ __device__ void store(T* pointer, T value, Order order) {
    detail::reference(pointer).store(value, detail::native(order));
}

/// Adds to `*pointer` and returns the old value.
template <class T>
__host__ __device__ T fetch_add(T* pointer, T value, Order order) {
    return detail::reference(pointer).fetch_add(value, detail::native(order));
}

/// Writes `desired` if `*pointer` is `expected`; returns whether it did. Relaxed.
template <class T>
__host__ __device__ bool claim(T* pointer, T expected, T desired) {
    return detail::reference(pointer).compare_exchange_strong(expected, desired,
                                                              cuda::std::memory_order_relaxed);
}

}  // namespace symm::simt
