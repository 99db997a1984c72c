#pragma once
/// \file
/// Ends the waits of a rank's kernels if a rank that they may wait for has failed or is gone.

#include <stop_token>
#include <thread>

#include "common/bootstrap/bootstrap.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/ranks/rank.hpp"
#include "common/sys/creator_process.hpp"

namespace symm {

/// A thread that looks ten times per second. The rank's own thread cannot: it may be in a launch,
/// which blocks while too much work is queued, or in a wait of the caller's, for the stream or for
/// something else.
class PeerWatch {
public:
    /// Bootstrap and timeout must outlive it. Throws std::system_error if no thread can be started.
    PeerWatch(Bootstrap& bootstrap, KernelTimeout& timeout);
    PeerWatch(const PeerWatch&) = delete;

private:
    void run(const std::stop_token& stop);

    Bootstrap& bootstrap_;
    KernelTimeout& timeout_;
    NotInChild<std::jthread> thread_;
};

/// For the destructor of an object whose memory kernels with `timeout` use: returns when all work
/// of the rank's GPU in this process has ended. Waits in kernels end by their own limit, if they
/// have one. Ends them if an exception causes the destruction (then it tells the other ranks too,
/// see Rank::tell_if_unwinding()), if a rank has failed or is gone, or if the driver refuses to
/// wait, as while a stream of the GPU is captured (the capture is lost then). Logs a warning if
/// calls were ended and nothing else says so. Does nothing in a child of fork().
/// From any thread, with any context current.
void end_calls(Rank& rank, KernelTimeout& timeout) noexcept;

}  // namespace symm
