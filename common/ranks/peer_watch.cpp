#include "common/ranks/peer_watch.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/sys/log.hpp"

namespace symm {

PeerWatch::PeerWatch(Bootstrap& bootstrap, KernelTimeout& timeout)
    : bootstrap_(bootstrap),
      timeout_(timeout),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void PeerWatch::run(const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopping;  // notified by the stop token alone
    while (!stop.stop_requested()) {
        if (bootstrap_.async_error("calls in flight")) {
            timeout_.end_waits();
            return;
        }
        stopping.wait_for(lock, stop, std::chrono::milliseconds{100}, [] { return false; });
    }
}

void end_calls(Rank& rank, KernelTimeout& timeout) noexcept {
    if (!timeout.is_in_creator()) {
        return;
    }
    rank.tell_if_unwinding();
    const bool unwinding = std::uncaught_exceptions() > 0;
    if (unwinding) {
        timeout.abort();
    }
    try {
        const CurrentContext current(rank.gpu());
        const bool is_known = unwinding || timeout.has_given_up();
        {
            const PeerWatch watch(rank.bootstrap(), timeout);
            cu_check(cuCtxSynchronize(), "cuCtxSynchronize()");
        }
        if (!is_known && timeout.has_given_up()) {
            log::warn(
                "rank {}: calls in flight were ended when their communicator was destroyed, and "
                "have no result: synchronize() before that would have said why",
                rank.rank());
        }
    } catch (const std::exception&) {  // a destructor cannot report it
        timeout.abort();
        cuCtxSynchronize();
    }
}

}  // namespace symm
