#include "common/ranks/peer_watch.hpp"

namespace symm {

PeerWatch::PeerWatch(Bootstrap& bootstrap, KernelTimeout& timeout)
    : bootstrap_(bootstrap),
      timeout_(timeout),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void PeerWatch::end_by(Deadline deadline) {
    const std::lock_guard lock(mutex_);
    deadline_ = deadline;
}

bool PeerWatch::has_lost_a_peer() {
    try {
        return bootstrap_.async_error("calls in flight").has_value();
    } catch (const std::exception&) {  // no memory for the text: the next look may have some
        return false;
    }
}

void PeerWatch::run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        if (deadline_ && deadline_->passed()) {
            break;
        }
        lock.unlock();
        const bool lost = has_lost_a_peer();
        lock.lock();
        if (lost) {
            break;
        }
        stopping_.wait_for(lock, stop, std::chrono::milliseconds{100}, [] { return false; });
    }
    if (!stop.stop_requested()) {
        timeout_.end_waits();
    }
}

}  // namespace symm
