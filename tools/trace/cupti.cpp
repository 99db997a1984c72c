// The real driver's calls, as CUPTI reports them. Its few types are written out here.

#include <dlfcn.h>

#include <stdexcept>

#include "tools/trace/cupti.hpp"
#include "tools/trace/recording.hpp"

namespace symm::trace {
namespace {

/// CUPTI's CUpti_CallbackData, which has been the same since CUPTI 4.1.
struct CallbackData {
    int site;  ///< kExit when the function returns.
    const char* function;
    const void* arguments;
    const CUresult* result;
    const char* kernel;  ///< The name of the kernel that a launch starts; else null.
    CUcontext context;
    std::uint32_t context_number;
    std::uint64_t* for_callbacks;
    std::uint32_t correlation;
};
constexpr int kExit = 1;
constexpr int kDriverApi = 1;  ///< CUPTI_CB_DOMAIN_DRIVER_API.

void on_call(void*, int, std::uint32_t, const void* data) {
    const auto& call = *static_cast<const CallbackData*>(data);
    if (call.site != kExit || this_thread() == nullptr) {
        return;
    }
    const std::vector<Parameter>* parameters = parameters_of(call.function);
    const auto slots =
        parameters != nullptr ? slots_in(call.arguments, *parameters) : std::vector<const void*>();
    add(call.function, slots.data(), *call.result, call.kernel);
}

void* library() {
    for (const char* name :
         {"libcupti.so", "libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/lib64/libcupti.so",
          "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"}) {
        if (void* found = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
            return found;  // never closed: the driver calls it until the process ends
        }
    }
    throw std::runtime_error(
        "libcupti.so, which records the real driver's calls, was not found. It comes with the CUDA "
        "Toolkit: set LD_LIBRARY_PATH to its extras/CUPTI/lib64, or use --driver emulated");
}

}  // namespace

void* cupti_function(const char* name) {
    static void* const cupti = library();
    return dlsym(cupti, name);
}

void subscribe_to_cupti() {
    void* subscriber = nullptr;
    call_cupti("cuptiSubscribe", &subscriber, &on_call, static_cast<void*>(nullptr));
    call_cupti("cuptiEnableDomain", std::uint32_t{1}, subscriber, kDriverApi);
}

}  // namespace symm::trace
