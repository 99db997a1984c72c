#pragma once
/// \file
/// Streams and events as far as a communicator needs them, for the explorer: a stream is a list of
/// work that one thread runs in order, and several streams run at the same time.

#include <functional>
#include <utility>
#include <vector>

#include "labs/05_device_prims/signal.hpp"

namespace symm::bugs_that_shipped {

/// What cuEventRecord() has recorded.
struct Event {
    std::uint32_t* word;        ///< How many of the records have been reached.
    std::uint32_t records = 0;  ///< So far, by the host.
};

class Stream {
public:
    void launch(std::function<void()> kernel) { work_.push_back(std::move(kernel)); }
    /// cuEventRecord(): the event is reached once all work before has ended.
    void record(Event& event) {
        const std::uint32_t number = ++event.records;
        launch([word = event.word, number] { signal(word, number); });
    }
    /// cuStreamWaitEvent(): later work waits for the event's last record. Nothing if there is none.
    void wait(const Event& event) {
        launch([word = event.word, number = event.records] {
            simt::await(
                [&] { return has_reached(simt::load(word, simt::Order::kAcquire), number); },
                nullptr);
        });
    }
    void run() const {
        for (const auto& kernel : work_) {
            kernel();
        }
    }

private:
    std::vector<std::function<void()>> work_;
};

}  // namespace symm::bugs_that_shipped
