#include "tools/trace/driver_calls.hpp"

#include <mutex>

#include "common/cuda/driver.hpp"
#include "tools/trace/recording.hpp"

namespace symm {

trace::Recording*& trace::this_thread() {
    thread_local Recording* recording = nullptr;
    return recording;
}

void trace::add(std::string_view name, const void* const* slots, CUresult result,
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
    std::call_once(begun, is_emulated() ? trace::forward_through_trace : trace::subscribe_to_cupti);
    thread_local trace::Recording recording;  // a later step may use a range of this one
    recording.calls.clear();
    recording.names.restart();
    const struct Recorded {
        Recorded() { trace::this_thread() = &recording; }
        ~Recorded() { trace::this_thread() = nullptr; }
    } recorded;
    step();
    return std::move(recording.calls);
}

}  // namespace symm
