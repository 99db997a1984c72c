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
/// 2.28). 2.27 has all but the last two, which are then null.
struct NcclLibrary {
    struct UniqueId {
        char internal[128];
    };
    using Comm = ncclComm*;
    using Window = void*;

    int (*get_version)(int*);
    const char* (*get_error_string)(int);
    int (*get_unique_id)(UniqueId*);
    int (*comm_init_rank)(Comm*, int ranks, UniqueId, int rank);
    int (*comm_destroy)(Comm);
    int (*comm_abort)(Comm);
    int (*all_reduce)(const void*, void*, std::size_t count, int type, int op, Comm, void* stream);
    int (*reduce_scatter)(const void*, void*, std::size_t part, int type, int op, Comm,
                          void* stream);
    int (*all_gather)(const void*, void*, std::size_t part, int type, Comm, void* stream);
    int (*broadcast)(const void*, void*, std::size_t count, int type, int root, Comm, void* stream);
    int (*reduce)(const void*, void*, std::size_t count, int type, int op, int root, Comm,
                  void* stream);
    int (*group_start)();
    int (*group_end)();
    int (*send)(const void*, std::size_t count, int type, int peer, Comm, void* stream);
    int (*recv)(void*, std::size_t count, int type, int peer, Comm, void* stream);
    int (*mem_alloc)(void**, std::size_t);
    int (*mem_free)(void*);
    int (*window_register)(Comm, void*, std::size_t, Window*, int flags);
    int (*window_deregister)(Comm, Window);
    int (*dev_comm_create)(Comm, const void* requirements, void* dev_comm);
    int (*dev_comm_destroy)(Comm, const void* dev_comm);

    /// Loads NCCL: the file that SYMM_NCCL_LIB names; else libnccl.so.2 of LD_LIBRARY_PATH or the
    /// system; else nccl_of_python(). Null, with the reason, if there is none, or an older one.
    [[nodiscard]] static std::unique_ptr<NcclLibrary> load(std::string& why_not);

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

}  // namespace symm
