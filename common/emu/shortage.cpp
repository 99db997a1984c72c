#include "common/emu/shortage.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "common/emu/log.hpp"

namespace symm::emu {
namespace {

// `name` as bash's ulimit counts it, in units of `unit`.
Text limit_of(int resource, const char* name, rlim_t unit) {
    rlimit limit{};
    ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
    return limit.rlim_cur == RLIM_INFINITY ? Text("{} is unlimited", name)
                                           : Text("{} is {}", name, limit.rlim_cur / unit);
}

}  // namespace

CUresult shortage(std::string_view call, int error) {
    const Text memory = limit_of(RLIMIT_AS, "ulimit -v", 1024);
    switch (error) {
        case ENOMEM:
            say("{}: no memory or addresses are left ({})", call, std::string_view(memory));
            return CUDA_ERROR_OUT_OF_MEMORY;
        case EAGAIN:
            say("{}: the system starts no more threads ({}; {}, for their stacks)", call,
                std::string_view(limit_of(RLIMIT_NPROC, "ulimit -u", 1)), std::string_view(memory));
            return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        case EMFILE:
        case ENFILE:
            say("{}: no file descriptors are left ({})", call,
                std::string_view(limit_of(RLIMIT_NOFILE, "ulimit -n", 1)));
            return CUDA_ERROR_OPERATING_SYSTEM;
        default:
            say("{}: {}", call, std::strerror(error));
            return CUDA_ERROR_OPERATING_SYSTEM;
    }
}

}  // namespace symm::emu
