#pragma once
/// \file
/// Marks after calls, by which a program learns without a wait that the calls have ended.

#include <cuda.h>

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "common/cuda/check.hpp"
#include "common/cuda/event.hpp"
#include "common/cuda/graph.hpp"

namespace symm {

/// The marks of one communicator, numbered from 1 on. Functions need its context to be current.
class Marks {
public:
    /// Marks the end of the work queued so far in the stream. Returns the mark's number, or 0 if
    /// the stream is captured: a graph's work may run at any time, and any number of times.
    std::size_t add(CUstream stream) {
        if (is_captured(stream)) {
            return 0;
        }
        const RelaxedCapture relaxed;
        Event event = spare_.empty() ? Event(CU_EVENT_DISABLE_TIMING) : std::move(spare_.back());
        if (!spare_.empty()) {
            spare_.pop_back();
        }
        event.record(stream);
        ahead_.push_back(std::move(event));
        return passed_ + ahead_.size();
    }

    /// The last mark that is passed, and all before it.
    std::size_t passed() {
        const RelaxedCapture relaxed;
        while (!ahead_.empty()) {
            const CUresult state = cuEventQuery(ahead_.front().get());
            if (state == CUDA_ERROR_NOT_READY) {
                break;
            }
            cu_check(state, "cuEventQuery()");
            spare_.push_back(std::move(ahead_.front()));
            ahead_.pop_front();
            ++passed_;
        }
        return passed_;
    }

private:
    std::deque<Event> ahead_;  ///< Of marks not known to be passed, in their order.
    std::vector<Event> spare_;
    std::size_t passed_ = 0;
};

}  // namespace symm
