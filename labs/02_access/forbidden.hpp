#pragma once
/// \file
/// How a kernel without access fails. It runs in a child process, because a process in which a
/// kernel has failed like this can no longer use the device.
///
/// A forbidden load or store does not throw an exception. The GPU stops the kernel, and the driver
/// declares the whole context lost: from then on every call of the process on that device returns
/// CUDA_ERROR_ILLEGAL_ADDRESS (700). The first call to report it is not the launch, which only
/// queues the kernel, but a later one: cuStreamQuery, used here to wait. (The kernel
/// log shows an `Xid 31`.)
///
/// The child is this program, started again with a hidden option.

#include <cuda.h>

#include <string>
#include <string_view>

#include "labs/02_access/access_steps.hpp"

namespace symm {

/// A forbidden access.
struct Forbidden {
    std::string_view name;
    bool loads;  ///< Else it stores.
    /// The rights that the device gets first. Reading and writing is taken away again.
    CUmemAccess_flags given;
};
inline constexpr Forbidden kForbidden[] = {
    {"load-never-allowed", true, CU_MEM_ACCESS_FLAGS_PROT_NONE},
    {"store-never-allowed", false, CU_MEM_ACCESS_FLAGS_PROT_NONE},
    {"store-read-only", false, CU_MEM_ACCESS_FLAGS_PROT_READ},
    {"load-taken-away", true, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
    {"store-taken-away", false, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
};

/// The hidden option: `program --forbidden-child load-taken-away`.
inline constexpr std::string_view kForbiddenOption = "--forbidden-child";

/// The child's part: runs the forbidden kernel on the last device that can access memory of device
/// 0, prints what happens and ends the process, with status 0 if the kernel was stopped with
/// CUDA_ERROR_ILLEGAL_ADDRESS and the context is lost, else 1.
[[noreturn]] void run_forbidden(const Forbidden& kind);

/// The parent's part: starts `program` with the hidden option, on the driver in use here. Returns
/// whether the child ended with status 0. Throws std::system_error if it cannot be started,
/// std::runtime_error if it does not end within SYMM_TIMEOUT.
bool show_forbidden(const std::string& program, const Forbidden& kind);

/// Shows all kinds, one after the other, while this process keeps a buffer. Afterwards every user
/// of the buffer reads it: a context that is lost in another process does not affect this one.
StepReport show_all_forbidden(const std::string& program, const StepContext& context);

}  // namespace symm
