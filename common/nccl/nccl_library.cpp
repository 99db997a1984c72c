#include "common/nccl/nccl_library.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <stdexcept>

namespace symm {
namespace {

// NVLink multicast can put GPUs that others share out of service, and we compete without it: whatever the
// environment says, NCCL does not use it here. Set before main(), while there is one thread.
[[maybe_unused]] const int no_multicast = setenv("NCCL_NVLS_ENABLE", "0", 1);

template <class Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

}  // namespace

std::unique_ptr<NcclLibrary> NcclLibrary::load(std::string& why_not) {
    // Never closed: NCCL's threads outlive its communicators.
    void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        why_not = "libnccl.so.2 is not on the library path (LD_LIBRARY_PATH)";
        return nullptr;
    }
    auto nccl = std::make_unique<NcclLibrary>();
    const bool complete = find(library, "ncclGetVersion", nccl->get_version) &&
                          find(library, "ncclGetErrorString", nccl->get_error_string) &&
                          find(library, "ncclGetUniqueId", nccl->get_unique_id) &&
                          find(library, "ncclCommInitRank", nccl->comm_init_rank) &&
                          find(library, "ncclCommDestroy", nccl->comm_destroy) &&
                          find(library, "ncclCommAbort", nccl->comm_abort) &&
                          find(library, "ncclCommGetAsyncError", nccl->comm_get_async_error) &&
                          find(library, "ncclGroupStart", nccl->group_start) &&
                          find(library, "ncclGroupEnd", nccl->group_end) &&
                          find(library, "ncclAllReduce", nccl->all_reduce);
    if (!complete) {
        why_not = "libnccl.so.2 lacks a function that has been there since NCCL 2.4";
        return nullptr;
    }
    find(library, "ncclMemAlloc", nccl->mem_alloc);
    find(library, "ncclMemFree", nccl->mem_free);
    find(library, "ncclCommWindowRegister", nccl->window_register);
    find(library, "ncclCommWindowDeregister", nccl->window_deregister);
    return nccl;
}

void NcclLibrary::check(int result, const std::string& call) const {
    if (result != 0) {
        throw std::runtime_error(fmt::format("{} failed: {}", call, get_error_string(result)));
    }
}

std::string NcclLibrary::version() const {
    int code = 0;
    check(get_version(&code), "ncclGetVersion()");
    return fmt::format("{}.{}.{}", code / 10000, code % 10000 / 100, code % 100);
}

}  // namespace symm
