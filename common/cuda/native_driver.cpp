#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/driver/symbol_name.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/print.hpp"

namespace symm {
namespace {

/// Looks up the symbol that a linker would use for the header's name, so that the parameters are
/// the header's. Not by cuGetProcAddress, which returns the newest version of a function that its
/// version argument allows: for CUDA 13 a cuCtxSynchronize that takes a context.
void* find(void* library, const char* symbol) {
    void* function = dlsym(library, symbol);
    if (function == nullptr) {
        throw NoNativeDriver{
            fmt::format("libcuda.so.1 has no {} of CUDA {}.{}; a newer driver is needed", symbol,
                        CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10)};
    }
    return function;
}

/// Multicast objects can disable GPUs for their other users: a call ends the program.
template <class... Parameters>
void forbid(CUresult (*&entry)(Parameters...)) {
    entry = [](Parameters...) -> CUresult {
        write_text(
            STDERR_FILENO,
            "A multicast object on a real GPU can disable GPUs that others use. If these are "
            "yours alone, set SYMM_MULTICAST=1.\n");
        std::abort();
    };
}

void forbid_multicast(DriverTable& table) {
    forbid(table.cuMulticastGetGranularity_);
    forbid(table.cuMulticastCreate_);
    forbid(table.cuMulticastAddDevice_);
    forbid(table.cuMulticastBindMem_);
    forbid(table.cuMulticastBindAddr_);
    forbid(table.cuMulticastUnbind_);
}

}  // namespace

DriverTable native_driver() {
    // Kernels of several ranks on one GPU wait for each other, so their streams must not share a
    // hardware queue: 32 queues instead of 8, unless the user has set the variable.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    // With lazy loading, which is the driver's default, a kernel's first launch waits until running
    // kernels have ended. One of them may be waiting for the kernel that is launched.
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    // Never closed: owners with static storage may still give memory back at exit.
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        // `libcuda.so.1: ... No such file or directory`. If the name is another, libcuda needs that
        // file.
        const std::string error = dlerror();
        const bool broken =
            !error.starts_with("libcuda.so.1: ") || !error.ends_with(std::strerror(ENOENT));
        throw NoNativeDriver{"libcuda.so.1 cannot be loaded" + (broken ? " (" + error + ")" : ""),
                             "", broken};
    }
    DriverTable table;
#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) \
    table.name##_ =                                       \
        reinterpret_cast<decltype(table.name##_)>(find(library, SYMM_SYMBOL_NAME(name)));
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION
    if (env::number("SYMM_MULTICAST") == 0) {
        forbid_multicast(table);
    } else {
        write_text(STDERR_FILENO,
                   "SYMM_MULTICAST=1: multicast objects on real GPUs. We have not tried them.\n");
    }
    return table;
}

}  // namespace symm
