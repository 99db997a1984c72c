#include "common/profile/driver_calls.hpp"

#include <mutex>

#include "common/cuda/driver.hpp"
#include "common/profile/recording.hpp"

namespace symm {

profile::Recording*& profile::this_thread() {
    thread_local Recording* recording = nullptr;
    return recording;
}

void profile::add(std::string_view name, const void* const* slots, CUresult result,
                  const char* kernel) {
    if (Recording* const recording = this_thread()) {
        recording->calls.push_back(
            {std::string(name),
             text_of(name, parameters_of(name), slots, result, kernel, recording->names),
             result != CUDA_SUCCESS});
    }
}

std::vector<DriverCall> driver_calls_of(const std::function<void()>& step) {
    static std::once_flag begun;
    std::call_once(begun,
                   is_emulated() ? profile::forward_through_trace : profile::subscribe_to_cupti);
    thread_local profile::Recording recording;  // a later step may use a range of this one
    recording.calls.clear();
    recording.names.restart();
    const struct Recorded {
        Recorded() { profile::this_thread() = &recording; }
        ~Recorded() { profile::this_thread() = nullptr; }
    } recorded;
    step();
    return std::move(recording.calls);
}

}  // namespace symm
