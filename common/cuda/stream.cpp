#include "common/cuda/stream.hpp"

#include <fmt/core.h>

#include <stdexcept>
#include <thread>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/graph.hpp"

namespace symm {

Stream::Stream() {
    CUstream stream = nullptr;
    cu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate(NON_BLOCKING)");
    value_ = stream;
    if (!is_emulated()) {
        do_first_work();
    }
}

void Stream::give_back(CUstream stream) {
    cu_check(cuStreamDestroy(stream), "cuStreamDestroy()");
}

bool Stream::finished() const {
    const CUresult result = cuStreamQuery(value_);
    if (result == CUDA_ERROR_NOT_READY) {
        return false;
    }
    cu_check(result, "cuStreamQuery()");
    return true;
}

void Stream::synchronize(std::string_view what, Deadline deadline,
                         const std::function<void()>& meanwhile) const {
    // Polls, because cuStreamSynchronize has no timeout: at first without a pause (the wait for
    // a short kernel is part of the measured time), later with sleeps.
    const RelaxedCapture relaxed;
    for (int polls = 0; !finished(); ++polls) {
        if (deadline.passed()) {
            throw std::runtime_error(
                fmt::format("{} did not finish within {:.3g} s", what, deadline.seconds()));
        }
        if (polls > 1000) {
            std::this_thread::sleep_for(std::chrono::microseconds{50});
            if (meanwhile && polls % 100 == 0) {
                meanwhile();
            }
        }
    }
}

}  // namespace symm
