#include "common/nccl/nccl_library.hpp"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <glob.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "common/sys/environment.hpp"

namespace symm {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

/// The prefixes under which Python may keep its packages: of an active environment, of the python3
/// on PATH, and where pip installs.
std::vector<std::string> python_prefixes() {
    std::vector<std::string> prefixes = {env::foreign("VIRTUAL_ENV"), env::foreign("CONDA_PREFIX")};
    std::istringstream path(env::foreign("PATH"));
    for (std::string directory; std::getline(path, directory, ':');) {
        const std::string python = directory + "/python3";
        if (access(python.c_str(), X_OK) == 0) {
            prefixes.push_back(directory + "/..");
            std::error_code failed;
            prefixes.push_back(std::filesystem::canonical(python, failed).parent_path() / "..");
            break;
        }
    }
    prefixes.emplace_back("/usr/local");  // where Debian's pip installs as root
    prefixes.push_back(env::foreign("HOME") + "/.local");
    std::erase(prefixes, "");
    return prefixes;
}

/// Opens the file that SYMM_NCCL_LIB names; else searches as the linker does, then Python's
/// packages.
void* open_nccl(std::string& why_not) {
    const std::string chosen = env::text("SYMM_NCCL_LIB");
    const std::string name = chosen.empty() ? "libnccl.so.2" : chosen;
    std::error_code unused;
    if (std::filesystem::exists(chosen, unused) &&
        !std::filesystem::is_regular_file(chosen, unused)) {  // dlopen() would wait for a FIFO
        why_not = fmt::format("SYMM_NCCL_LIB: {}: this is not a regular file", chosen);
        return nullptr;
    }
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
        return library;
    }
    if (!chosen.empty()) {
        why_not = std::string("SYMM_NCCL_LIB: ") + dlerror();
        return nullptr;
    }
    const std::string python = nccl_of_python();
    if (python.empty()) {
        why_not =
            "libnccl.so.2 was not found. Install it (pip install nvidia-nccl-cu13), or name its "
            "place in LD_LIBRARY_PATH or SYMM_NCCL_LIB";
        return nullptr;
    }
    library = dlopen(python.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        why_not = dlerror();
    }
    return library;
}

}  // namespace

std::string nccl_of_python() {
    const std::string pattern =
        fmt::format("{{{}}}/lib/python3*/{{site,dist}}-packages/nvidia/nccl/lib/libnccl.so.2",
                    fmt::join(python_prefixes(), ","));
    glob_t found = {};  // in the order of the pattern's alternatives
    const bool any = glob(pattern.c_str(), GLOB_BRACE, nullptr, &found) == 0;
    std::string first = any ? found.gl_pathv[0] : "";
    globfree(&found);
    return first;
}

std::unique_ptr<NcclLibrary> NcclLibrary::load(std::string& why_not) {
    if (env::foreign("NCCL_NVLS_ENABLE") != "0") {
        why_not = "it would use NVLink multicast: call turn_multicast_off() first";
        return nullptr;
    }
    // Never closed: NCCL's threads outlive its communicators.
    void* library = open_nccl(why_not);
    if (library == nullptr) {
        return nullptr;
    }
    auto nccl = std::make_unique<NcclLibrary>();
    const bool complete =
        find(library, "ncclGetVersion", nccl->get_version) &&
        find(library, "ncclGetErrorString", nccl->get_error_string) &&
        find(library, "ncclGetUniqueId", nccl->get_unique_id) &&
        find(library, "ncclCommInitRank", nccl->comm_init_rank) &&
        find(library, "ncclCommDestroy", nccl->comm_destroy) &&
        find(library, "ncclCommAbort", nccl->comm_abort) &&
        find(library, "ncclAllReduce", nccl->all_reduce) &&
        find(library, "ncclReduceScatter", nccl->reduce_scatter) &&
        find(library, "ncclAllGather", nccl->all_gather) &&
        find(library, "ncclBroadcast", nccl->broadcast) &&
        find(library, "ncclReduce", nccl->reduce) &&
        find(library, "ncclGroupStart", nccl->group_start) &&
        find(library, "ncclGroupEnd", nccl->group_end) && find(library, "ncclSend", nccl->send) &&
        find(library, "ncclRecv", nccl->recv) && find(library, "ncclMemAlloc", nccl->mem_alloc) &&
        find(library, "ncclMemFree", nccl->mem_free) &&
        find(library, "ncclCommWindowRegister", nccl->window_register) &&
        find(library, "ncclCommWindowDeregister", nccl->window_deregister);
    if (!complete) {
        why_not = "libnccl.so.2 lacks a function that NCCL has had since 2.27";
        return nullptr;
    }
    find(library, "ncclDevCommCreate", nccl->dev_comm_create);
    find(library, "ncclDevCommDestroy", nccl->dev_comm_destroy);
    return nccl;
}

void NcclLibrary::check(int result, const std::string& call) const {
    if (result != 0) {
        throw std::runtime_error(fmt::format("{} failed: {}", call, get_error_string(result)));
    }
}

bool NcclLibrary::lets_ranks_share_a_gpu() const {
    constexpr int kFirst = 23007;  // 2.30.7
    int code = 0;
    check(get_version(&code), "ncclGetVersion()");
    return code >= kFirst;
}

std::string NcclLibrary::version() const {
    int code = 0;
    check(get_version(&code), "ncclGetVersion()");
    return fmt::format("{}.{}.{}", code / 10000, code % 10000 / 100, code % 100);
}

}  // namespace symm
