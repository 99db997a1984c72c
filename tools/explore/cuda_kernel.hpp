#pragma once
/// \file
/// A plain CUDA kernel in a scene (docs/EXPLORE_YOURS.md): threadIdx, __syncthreads(), __shared__
/// and so on, for clang without CUDA. Include it before the kernel.
///
///     run_kernels(scene, rank, {.blocks = 2, .threads = 4}, {[=] { my_kernel(mine, peers); }});
///
/// The explorer knows accesses of system scope. All else that is named here does not compile, and
/// clang says why.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <cuda/atomic>
#include <functional>
#include <string>
#include <vector>

#include "common/simt/warp.hpp"
#include "tools/explore/explore.hpp"

namespace symm::explore {

/// Adds a rank's kernels, which run one after another: calls of `__global__` functions. A thread
/// may return before others synchronize.
inline void run_kernels(Scene& scene, int rank, const Shape& shape,
                        const std::vector<std::function<void()>>& kernels) {
    scene.launch(rank, shape, [kernels](const simt::ThreadBlock&) {
        for (const auto& kernel : kernels) {
            kernel();
            leave_block();
            kernel_end();
        }
    });
}

/// The block's dynamic shared memory, for `extern __shared__ T name[]`.
template <class T>
T* dynamic_shared() {
    return this_block().shared<T>();
}

/// threadIdx.
inline uint3 thread_index() {
    const unsigned rank = this_block().thread_rank();
    const dim3 dim = block_dim();
    return {rank % dim.x, rank / dim.x % dim.y, rank / dim.x / dim.y};
}

/// The warp of the thread, all lanes of which must be in `mask`.
inline simt::Warp whole_warp(unsigned mask, const std::string& what) {
    const simt::Warp warp(this_block());
    const unsigned all = warp.size() == simt::kWarpSize ? ~0U : (1U << warp.size()) - 1;
    if ((mask & all) != all) {
        fail("the explorer knows only " + what + " of whole warps");
    }
    return warp;
}

/// A shuffle: the value of the lane `source(lane, first)`, or its own where that is beyond its
/// group of `width` lanes, of which `first` is the first.
template <class T, class Source>
T shuffle(unsigned mask, T value, unsigned width, const Source& source) {
    const simt::Warp warp = whole_warp(mask, "shuffles");
    if (width == 0 || width > simt::kWarpSize || (width & (width - 1)) != 0) {
        fail("the width of a shuffle is " + std::to_string(width) + ": no power of two up to 32");
    }
    const unsigned lane = warp.thread_rank();
    const unsigned first = lane / width * width;
    const unsigned from = source(lane, first);
    const bool is_its_own = from >= first + width;
    if (!is_its_own && from >= warp.size()) {
        fail("a shuffle reads lane " + std::to_string(from) + ", which its warp does not have");
    }
    const T got = warp.shfl(value, is_its_own ? lane : from);
    // What Schedule::leave_block() leaves there. A type of few bytes may have such a value.
    std::array<unsigned char, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &got, sizeof(T));
    if (sizeof(T) >= 4 &&
        std::ranges::all_of(bytes, [](unsigned char byte) { return byte == 0xd5; })) {
        fail("a shuffle reads lane " + std::to_string(from) + ", which has returned");
    }
    return got;
}

#define SYMM_REFUSED(name, why)   \
    template <class... Arguments> \
    __attribute__((unavailable("the explorer knows no " why))) int name(Arguments...)

/// Wrappers of inline PTX, by the instruction's name. Let those of a kernel call these:
/// `asm volatile("st.release.sys.u32 ...")` is `st_release_sys(pointer, value)`.
namespace ptx {
template <class T>
T ld_relaxed_sys(const T* p) {
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
template <class T>
T ld_acquire_sys(const T* p) {
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
template <class T>
T ld_volatile(const T* p) {
    return ld_relaxed_sys(p);
}
template <class T>
void st_relaxed_sys(T* p, T value) {
    __atomic_store_n(p, value, __ATOMIC_RELAXED);
}
template <class T>
void st_release_sys(T* p, T value) {
    __atomic_store_n(p, value, __ATOMIC_RELEASE);
}
template <class T>
void st_volatile(T* p, T value) {
    st_relaxed_sys(p, value);
}
#define SYMM_ATOM(order, ORDER)                                                             \
    template <class T>                                                                      \
    T atom_add_##order##_sys(T* p, T value) {                                               \
        return std::atomic_ref(*p).fetch_add(value, static_cast<std::memory_order>(ORDER)); \
    }                                                                                       \
    template <class T>                                                                      \
    T atom_and_##order##_sys(T* p, T value) {                                               \
        return __atomic_fetch_and(p, value, ORDER);                                         \
    }                                                                                       \
    template <class T>                                                                      \
    T atom_or_##order##_sys(T* p, T value) {                                                \
        return __atomic_fetch_or(p, value, ORDER);                                          \
    }                                                                                       \
    template <class T>                                                                      \
    T atom_exch_##order##_sys(T* p, T value) {                                              \
        return __atomic_exchange_n(p, value, ORDER);                                        \
    }                                                                                       \
    template <class T>                                                                      \
    T atom_cas_##order##_sys(T* p, T expected, T value) {                                   \
        std::atomic_ref(*p).compare_exchange_strong(expected, value,                        \
                                                    static_cast<std::memory_order>(ORDER)); \
        return expected;                                                                    \
    }                                                                                       \
    template <class T>                                                                      \
    void red_add_##order##_sys(T* p, T value) {                                             \
        std::atomic_ref(*p).fetch_add(value, static_cast<std::memory_order>(ORDER));        \
    }
SYMM_ATOM(relaxed, __ATOMIC_RELAXED)
SYMM_ATOM(acquire, __ATOMIC_ACQUIRE)
SYMM_ATOM(release, __ATOMIC_RELEASE)
SYMM_ATOM(acq_rel, __ATOMIC_ACQ_REL)
#undef SYMM_ATOM
inline void fence_acq_rel_sys() {
    std::atomic_thread_fence(std::memory_order_acq_rel);
}
inline void fence_sc_sys() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
}
inline void griddepcontrol_wait() {
    this_block().wait_for_predecessor();
}
inline void griddepcontrol_launch_dependents() {
    this_block().launch_dependents();
}
SYMM_REFUSED(ld_relaxed_gpu, "scope but .sys");
SYMM_REFUSED(ld_acquire_gpu, "scope but .sys");
SYMM_REFUSED(st_relaxed_gpu, "scope but .sys");
SYMM_REFUSED(st_release_gpu, "scope but .sys");
SYMM_REFUSED(fence_acq_rel_gpu, "scope but .sys");
SYMM_REFUSED(fence_sc_gpu, "scope but .sys");
SYMM_REFUSED(cp_async_bulk, "bulk copies (TMA)");
SYMM_REFUSED(multimem_ld_reduce, "multicast");
SYMM_REFUSED(multimem_st, "multicast");
SYMM_REFUSED(multimem_red, "multicast");
}  // namespace ptx

}  // namespace symm::explore

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
#define threadIdx (::symm::explore::thread_index())
#define blockIdx (uint3(::symm::explore::this_block().host().group_index))
#define blockDim (::symm::explore::block_dim())
#define gridDim (::symm::explore::this_block().host().grid_dim)

#undef __global__
#define __global__
#undef __shared__
// `used`: else clang removes the stores of a variable that only ever holds 0, and their races.
#define __shared__ static __attribute__((section("symm_shared"), used))
#undef __launch_bounds__
#define __launch_bounds__(...)
// As in cuda::atomic_ref<T, cuda::thread_scope_device>.
#define thread_scope_thread refused_the_explorer_knows_only_thread_scope_system
#define thread_scope_block refused_the_explorer_knows_only_thread_scope_system
#define thread_scope_device refused_the_explorer_knows_only_thread_scope_system

inline void __syncthreads() {
    symm::explore::this_block().sync();
}
inline int __syncthreads_or(int vote) {
    return symm::explore::this_block().sync_or(vote != 0) ? 1 : 0;
}
inline int __syncthreads_and(int vote) {
    return symm::explore::this_block().sync_or(vote == 0) ? 0 : 1;
}
inline void __syncwarp(unsigned mask = ~0U) {
    symm::explore::whole_warp(mask, "syncs");
    const auto& block = symm::explore::this_block();
    block.host().sync_warp(block.thread_rank() / symm::simt::kWarpSize);
}
inline unsigned __ballot_sync(unsigned mask, int vote) {
    return symm::explore::whole_warp(mask, "votes").ballot(vote != 0);
}
inline int __any_sync(unsigned mask, int vote) {
    return __ballot_sync(mask, vote) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int vote) {
    return __ballot_sync(mask, static_cast<int>(vote == 0)) == 0 ? 1 : 0;
}
template <class T>
T __shfl_sync(unsigned mask, T value, unsigned lane, unsigned width = symm::simt::kWarpSize) {
    return symm::explore::shuffle(mask, value, width,
                                  [=](unsigned, unsigned first) { return first + lane % width; });
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, unsigned bits, unsigned width = symm::simt::kWarpSize) {
    return symm::explore::shuffle(mask, value, width,
                                  [=](unsigned mine, unsigned) { return mine ^ bits; });
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, unsigned width = symm::simt::kWarpSize) {
    return symm::explore::shuffle(mask, value, width,
                                  [=](unsigned mine, unsigned) { return mine + by; });
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, unsigned width = symm::simt::kWarpSize) {
    return symm::explore::shuffle(mask, value, width, [=](unsigned mine, unsigned first) {
        return mine < first + by ? mine : mine - by;
    });
}
inline void __threadfence_system() {
    symm::explore::ptx::fence_sc_sys();
}
inline void __nanosleep(unsigned) {}
/// Time stands still: a wait with a limit of time never reaches it.
inline long long clock64() {
    return 0;
}
inline void cudaGridDependencySynchronize() {
    symm::explore::ptx::griddepcontrol_wait();
}
inline void cudaTriggerProgrammaticLaunchCompletion() {
    symm::explore::ptx::griddepcontrol_launch_dependents();
}
SYMM_REFUSED(__threadfence, "scope but the system's: use __threadfence_system()");
SYMM_REFUSED(__threadfence_block, "scope but the system's: use __threadfence_system()");

template <class T>
T atomicAdd_system(T* p, std::type_identity_t<T> value) {
    return symm::explore::ptx::atom_add_relaxed_sys(p, value);
}
template <class T>
T atomicSub_system(T* p, std::type_identity_t<T> value) {
    return atomicAdd_system(p, static_cast<T>(-value));
}
template <class T>
T atomicAnd_system(T* p, std::type_identity_t<T> value) {
    return symm::explore::ptx::atom_and_relaxed_sys(p, value);
}
template <class T>
T atomicOr_system(T* p, std::type_identity_t<T> value) {
    return symm::explore::ptx::atom_or_relaxed_sys(p, value);
}
template <class T>
T atomicExch_system(T* p, std::type_identity_t<T> value) {
    return symm::explore::ptx::atom_exch_relaxed_sys(p, value);
}
template <class T>
T atomicCAS_system(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
    return symm::explore::ptx::atom_cas_relaxed_sys(p, expected, value);
}
SYMM_REFUSED(atomicAdd, "scope but the system's: use atomicAdd_system()");
SYMM_REFUSED(atomicSub, "scope but the system's: use atomicSub_system()");
SYMM_REFUSED(atomicAnd, "scope but the system's: use atomicAnd_system()");
SYMM_REFUSED(atomicOr, "scope but the system's: use atomicOr_system()");
SYMM_REFUSED(atomicMin_system, "minimum: write it with atomicCAS_system()");
SYMM_REFUSED(atomicMax_system, "maximum: write it with atomicCAS_system()");
SYMM_REFUSED(atomicExch, "scope but the system's: use atomicExch_system()");
SYMM_REFUSED(atomicCAS, "scope but the system's: use atomicCAS_system()");
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
