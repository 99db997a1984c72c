#pragma once
/// \file
/// Events: a place in a stream that others wait for.
///
/// Each record makes a Moment of its own; whoever waits keeps the Moment that was the latest when
/// it asked. So a later record of the same event does not disturb those who wait already.

#include <cuda.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "common/emu/contexts.hpp"

namespace symm::emu {

struct Capture;

/// One record: over when its stream has got there.
class Moment {
public:
    void arrive();
    void wait();
    bool has_come() const;
    /// When it came; only once it has.
    std::chrono::steady_clock::time_point when() const { return when_; }

private:
    mutable std::mutex mutex_;
    std::condition_variable came_;
    bool has_come_ = false;
    std::chrono::steady_clock::time_point when_;
};

struct Event {
    Event(Context& made_in, unsigned creation_flags) : context(made_in), flags(creation_flags) {}

    Context& context;
    const unsigned flags;

    std::mutex mutex;                ///< Guards what follows.
    std::shared_ptr<Moment> latest;  ///< Null until recorded.
    /// Recorded in a stream that was capturing: the capture, and the nodes that lie before the
    /// record.
    std::shared_ptr<Capture> capture;
    std::vector<int> after;
};

/// The event of a handle, or null.
std::shared_ptr<Event> find_event(CUevent handle);

}  // namespace symm::emu
