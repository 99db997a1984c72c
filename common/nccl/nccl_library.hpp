#pragma once
/// \file
/// NCCL's library, loaded when a program runs. Programs compare themselves with it, or print why
/// they do not.

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>

struct ncclComm;

namespace symm {

/// Programs call it while they have one thread: NcclLibrary::load() refuses without it. NCCL does
/// not use NVLink multicast then, whatever the environment says. The labs do without, since it can
/// make GPUs shared with others unusable.
inline void turn_multicast_off() {
    ::setenv("NCCL_NVLS_ENABLE", "0", 1);
}

/// The functions of libnccl.so.2 that the comparisons need, with their types from nccl.h (NCCL
/// 2.28). Those that an older library lacks are null, as marked below.
struct NcclLibrary {
    struct UniqueId {
        char internal[128];
    };
    using Comm = ncclComm*;
    using Window = void*;

    int (*get_version)(int*) = nullptr;
    const char* (*get_error_string)(int) = nullptr;
    int (*get_unique_id)(UniqueId*) = nullptr;
    int (*comm_init_rank)(Comm*, int ranks, UniqueId, int rank) = nullptr;
    int (*comm_destroy)(Comm) = nullptr;
    int (*comm_abort)(Comm) = nullptr;
    int (*all_reduce)(const void*, void*, std::size_t count, int type, int op, Comm,
                      void* stream) = nullptr;
    int (*reduce_scatter)(const void*, void*, std::size_t part, int type, int op, Comm,
                          void* stream) = nullptr;
    int (*all_gather)(const void*, void*, std::size_t part, int type, Comm, void* stream) = nullptr;
    int (*group_start)() = nullptr;  ///< These four are from 2.7; they may be null.
    int (*group_end)() = nullptr;
    int (*send)(const void*, std::size_t count, int type, int peer, Comm, void* stream) = nullptr;
    int (*recv)(void*, std::size_t count, int type, int peer, Comm, void* stream) = nullptr;
    int (*mem_alloc)(void**, std::size_t) = nullptr;  ///< From 2.19; may be null.
    int (*mem_free)(void*) = nullptr;                 ///< From 2.19; may be null.
    int (*window_register)(Comm, void*, std::size_t, Window*,
                           int flags) = nullptr;       ///< From 2.27; may be null.
    int (*window_deregister)(Comm, Window) = nullptr;  ///< From 2.27; may be null.
    int (*dev_comm_create)(Comm, const void* requirements,
                           void* dev_comm) = nullptr;               ///< From 2.28; may be null.
    int (*dev_comm_destroy)(Comm, const void* dev_comm) = nullptr;  ///< From 2.28; may be null.

    /// Loads NCCL: the file that SYMM_NCCL_LIB names; else libnccl.so.2 of LD_LIBRARY_PATH or the
    /// system; else nccl_of_python(). Null, with the reason, if there is none.
    static std::unique_ptr<NcclLibrary> load(std::string& why_not);

    /// Throws std::runtime_error with the call and NCCL's own text unless `result` is 0.
    void check(int result, const std::string& call) const;
    /// For example `2.28.9`.
    std::string version() const;
    /// Whether NCCL_MULTI_RANK_GPU_ENABLE=1, which load_nccl() sets if it is needed, has an
    /// effect.
    bool lets_ranks_share_a_gpu() const;
};

/// The library of the Python package nvidia-nccl-cu12 or -cu13, in an active environment, beside
/// the python3 on PATH, in /usr/local or in ~/.local; an empty string if there is none.
std::string nccl_of_python();

/// nccl.h's NCCL_WIN_COLL_SYMMETRIC.
inline constexpr int kNcclSymmetricWindow = 1;

}  // namespace symm
