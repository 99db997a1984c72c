#include "common/cuda/event.hpp"

#include "common/cuda/check.hpp"

namespace symm {

Event::Event(unsigned flags) {
    check(cuEventCreate(&event_, flags), "cuEventCreate(flags={})", flags);
}

Event::~Event() {
    if (event_ != nullptr) {
        check_nothrow(cuEventDestroy(event_), "cuEventDestroy()");
    }
}

void Event::record(CUstream stream) const {
    check(cuEventRecord(event_, stream), "cuEventRecord()");
}

void Event::hold_back(CUstream stream) const {
    check(cuStreamWaitEvent(stream, event_, 0), "cuStreamWaitEvent()");
}

double elapsed_us(const Event& start, const Event& end) {
    float milliseconds = 0;
    check(cuEventElapsedTime(&milliseconds, start.get(), end.get()), "cuEventElapsedTime()");
    return milliseconds * 1e3;
}

}  // namespace symm
