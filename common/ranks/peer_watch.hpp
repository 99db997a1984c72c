#pragma once
/// \file
/// Ends the waits of a rank's kernels if a rank that they may wait for has failed or is gone.

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "common/bootstrap/bootstrap.hpp"
#include "common/cuda/kernel_timeout.hpp"

namespace symm {

/// A thread that looks ten times per second. The rank's own thread cannot: it may be in a launch,
/// which blocks while too much work is queued, or in a wait of the caller's, for the stream or for
/// something else.
class PeerWatch {
public:
    /// Both must outlive it. Throws std::system_error if no thread can be started.
    PeerWatch(Bootstrap& bootstrap, KernelTimeout& timeout);
    PeerWatch(const PeerWatch&) = delete;
    PeerWatch& operator=(const PeerWatch&) = delete;

    /// From now on it also ends the waits when the deadline has passed.
    void end_by(Deadline deadline);

private:
    bool has_lost_a_peer();
    void run(const std::stop_token& stop);

    Bootstrap& bootstrap_;
    KernelTimeout& timeout_;
    std::mutex mutex_;
    std::condition_variable_any stopping_;  ///< Notified by the stop token alone.
    std::optional<Deadline> deadline_;      ///< Guarded by the mutex.
    std::jthread thread_;
};

}  // namespace symm
