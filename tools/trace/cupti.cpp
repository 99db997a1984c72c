// The real driver's calls, as CUPTI reports them. Where the CUDA Toolkit has CUPTI's headers; its
// library is loaded at run time.

#include <dlfcn.h>
#include <fmt/core.h>

#include <stdexcept>

#include "tools/trace/recording.hpp"

#if __has_include(<cupti.h>)
#include <cupti.h>

namespace symm::trace {
namespace {

void on_call(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    if (call.callbackSite != CUPTI_API_EXIT || this_thread() == nullptr) {
        return;
    }
    const std::vector<Parameter>* parameters = parameters_of(call.functionName);
    const auto slots = parameters != nullptr ? slots_in(call.functionParams, *parameters)
                                             : std::vector<const void*>();
    add(call.functionName, slots.data(), *static_cast<const CUresult*>(call.functionReturnValue),
        call.symbolName);
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

/// Calls the function of `cupti` that has this name.
template <class Function, class... Arguments>
void call(void* cupti, const char* name, Arguments... arguments) {
    const auto function = reinterpret_cast<Function*>(dlsym(cupti, name));
    if (function == nullptr) {
        throw std::runtime_error(fmt::format("libcupti.so has no {}", name));
    }
    if (const CUptiResult result = function(arguments...); result != CUPTI_SUCCESS) {
        throw std::runtime_error(
            fmt::format("{} failed: CUPTI error {}. Is another profiler running?", name,
                        static_cast<int>(result)));
    }
}

}  // namespace

void subscribe_to_cupti() {
    void* const cupti = library();
    CUpti_SubscriberHandle subscriber = nullptr;
    call<decltype(cuptiSubscribe)>(cupti, "cuptiSubscribe", &subscriber, &on_call, nullptr);
    call<decltype(cuptiEnableDomain)>(cupti, "cuptiEnableDomain", 1, subscriber,
                                      CUPTI_CB_DOMAIN_DRIVER_API);
}

}  // namespace symm::trace

#else

void symm::trace::subscribe_to_cupti() {
    throw std::runtime_error(
        "the real driver's calls are recorded by CUPTI, whose headers this build did not find: "
        "build it with a CUDA Toolkit that has extras/CUPTI, or use --driver emulated");
}

#endif
