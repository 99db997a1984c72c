#include "common/emu/errors.hpp"

#include <cstring>

#include "common/emu/log.hpp"

namespace symm::emu {

CUresult shortage(std::string_view call, int error) {
    switch (error) {
        case ENOMEM:
            say("{}: no memory or addresses are left (see ulimit -v)", call);
            return CUDA_ERROR_OUT_OF_MEMORY;
        case EAGAIN:
            say("{}: the system cannot start more threads (see ulimit -u, and ulimit -v for their "
                "stacks)",
                call);
            return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        case EMFILE:
        case ENFILE:
            say("{}: no file descriptors are left (see ulimit -n)", call);
            return CUDA_ERROR_OPERATING_SYSTEM;
        case EFBIG:
            say("{}: the memory is larger than a file may be (see ulimit -f)", call);
            return CUDA_ERROR_OPERATING_SYSTEM;
        default:
            say("{}: {}", call, std::strerror(error));
            return CUDA_ERROR_OPERATING_SYSTEM;
    }
}

}  // namespace symm::emu
