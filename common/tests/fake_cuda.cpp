// A library with the functions of libcuda.so.1 that the loader asks for. cuInit returns the number
// in FAKE_CUINIT. There are 7 devices. The other functions succeed, and do nothing.

#include <cuda.h>

#include <cstdlib>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "common/driver/symbol_name.hpp"

namespace {

template <class... Arguments>
CUresult answer(std::string_view name, std::tuple<Arguments...> arguments) {
    if (name == "cuInit" && std::getenv("FAKE_CUINIT") != nullptr) {
        return static_cast<CUresult>(std::atoi(std::getenv("FAKE_CUINIT")));
    }
    if constexpr (std::is_same_v<std::tuple<Arguments...>, std::tuple<int*>>) {
        if (name == "cuDeviceGetCount") {
            *std::get<0>(arguments) = 7;
        }
    }
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

#ifdef FAKE_OLD_DRIVER
CUresult cuInit(unsigned int) {
    return CUDA_SUCCESS;
}
#else
#define SYMM_DRIVER_FUNCTION(name, parameters, arguments)                 \
    CUresult CUDAAPI name parameters {                                    \
        return answer(SYMM_SYMBOL_NAME(name), std::make_tuple arguments); \
    }
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION

CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t,
                             CUdriverProcAddressQueryResult*) {
    *function = std::string_view(name).starts_with("cuMulticast")
                    ? reinterpret_cast<void*>(cuMulticastCreate)
                    : nullptr;
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
#endif

}  // extern "C"
