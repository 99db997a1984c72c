#pragma once
/// \file
/// Events: each marks a place in a stream, and others wait until the stream has reached it.
///
/// Each record makes a Moment of its own. A wait keeps the Moment that was the latest when it was
/// queued, so a later record of the same event does not change it.

#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <mutex>
#include <set>

#include "common/emu/streams/contexts.hpp"

namespace symm::emu {

struct Capture;

/// One record of an event: the time when its stream reached it. Ready from then on.
using Moment = std::shared_future<std::chrono::steady_clock::time_point>;

inline bool has_come(const Moment& moment) {
    return moment.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

struct Event {
    Event(Context& made_in, unsigned creation_flags) : context(made_in), flags(creation_flags) {}

    Context& context;
    const unsigned flags;

    std::mutex mutex;  ///< Guards what follows.
    Moment latest;     ///< Not valid() until recorded.
    /// Where it was recorded in a stream that was capturing: the capture, and the nodes before it.
    std::shared_ptr<Capture> capture;
    std::set<std::size_t> after;
};

}  // namespace symm::emu
