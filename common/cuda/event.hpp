#pragma once
/// \file
/// The owner of an event.

#include <cuda.h>

#include "common/sys/owner.hpp"

namespace symm {

/// A point in a stream's work, for waits and for time measurements. Move-only.
class Event : public Owner<Event, CUevent> {
public:
    /// With CU_EVENT_DISABLE_TIMING it costs less, and orders streams only.
    explicit Event(CUevent_flags flags = CU_EVENT_DEFAULT);

    CUevent get() const { return value_; }
    /// Marks the point that the stream has reached when all work queued so far is done.
    void record(CUstream stream) const;
    /// Makes the stream's later work wait for that point.
    void make_wait(CUstream stream) const;

    static void give_back(CUevent event);
};

/// Time between two recorded and finished events, in microseconds.
double elapsed_us(const Event& start, const Event& end);

}  // namespace symm
