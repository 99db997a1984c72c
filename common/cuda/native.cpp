#include <dlfcn.h>

#include <cstdlib>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"

namespace symm {
namespace {

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

/// The interface a function is asked for with: that of the header this file was compiled with.
/// cuCtxCreate is the exception: the header of CUDA 12 still declares its form of CUDA 3.2.
int interface_version(std::string_view name) {
    return name == "cuCtxCreate" && CUDA_VERSION < 13000 ? 3020 : CUDA_VERSION;
}

/// Looks one function up. cuGetProcAddress takes its first name, and finds the form by the version.
bool find(GetProcAddress look_up, const char* name, void** function, std::string& why_not) {
    CUdriverProcAddressQueryResult status{};
    const CUresult result =
        look_up(name, function, interface_version(name), CU_GET_PROC_ADDRESS_DEFAULT, &status);
    if (result == CUDA_SUCCESS && *function != nullptr) {
        return true;
    }
    why_not = fmt::format("libcuda.so.1 has no {} of CUDA {}.{}; a newer driver is needed", name,
                          CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    return false;
}

}  // namespace

bool load_native_driver(DriverTable& table, std::string& why_not) {
    // Kernels of several ranks on one GPU wait for each other, so their streams must not share a
    // queue of the hardware: 32 queues instead of 8, where the user has not said otherwise.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    // Never closed: owners with static storage may still give memory back at exit.
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        why_not = "libcuda.so.1 cannot be loaded";
        return false;
    }
    const auto look_up = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
    if (look_up == nullptr) {
        why_not = "libcuda.so.1 is older than CUDA 12";
        return false;
    }
    bool found = true;
#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) \
    found = found && find(look_up, #name, reinterpret_cast<void**>(&table.name##_), why_not);
#include "common/cuda/driver_functions.inc"
#undef SYMM_DRIVER_FUNCTION
    return found;
}

}  // namespace symm
