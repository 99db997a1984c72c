#include "common/cuda/event.hpp"

#include "common/cuda/check.hpp"

namespace symm {

Event::Event(CUevent_flags flags) {
    CUevent event = nullptr;
    cu_check(cuEventCreate(&event, flags), "cuEventCreate()");
    value_ = event;
}

void Event::give_back(CUevent event) {
    cu_check(cuEventDestroy(event), "cuEventDestroy()");
}

void Event::record(CUstream stream) const {
    cu_check(cuEventRecord(value_, stream), "cuEventRecord()");
}

void Event::make_wait(CUstream stream) const {
    cu_check(cuStreamWaitEvent(stream, value_, 0), "cuStreamWaitEvent()");
}

double elapsed_us(const Event& start, const Event& end) {
    float milliseconds = 0;
    cu_check(cuEventElapsedTime(&milliseconds, start.get(), end.get()), "cuEventElapsedTime()");
    return milliseconds * 1e3;
}

}  // namespace symm
