#include "common/cuda/event.hpp"

#include "common/cuda/check.hpp"

namespace symm {

Event::Event(unsigned flags) {
    cu_check(cuEventCreate(&event_, flags), "cuEventCreate(flags={})", flags);
}

Event::~Event() {
    if (event_ != nullptr) {
        cu_check_nothrow(cuEventDestroy(event_), "cuEventDestroy()");
    }
}

void Event::record(CUstream stream) const {
    cu_check(cuEventRecord(event_, stream), "cuEventRecord()");
}

void Event::hold_back(CUstream stream) const {
    cu_check(cuStreamWaitEvent(stream, event_, 0), "cuStreamWaitEvent()");
}

double elapsed_us(const Event& start, const Event& end) {
    float milliseconds = 0;
    cu_check(cuEventElapsedTime(&milliseconds, start.get(), end.get()), "cuEventElapsedTime()");
    return milliseconds * 1e3;
}

}  // namespace symm
