#pragma once
/// \file
/// The primitives on symmetric memory of a run's ranks: set up, played, checked and timed.

#include <cstdint>
#include <string_view>

#include "common/cuda/event.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/stream.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/kernels.hpp"

namespace symm {

/// `signal`, `relaxed` or `packet`.
std::string_view name_of(Carrier carrier);

/// One rank's latency_test. Construction and all calls are collective: all ranks, the same order.
class LatencyTest {
public:
    /// No wait in a kernel lasts longer than `limit`.
    explicit LatencyTest(Rank& rank, std::chrono::nanoseconds limit = Deadline::standard_limit());
    LatencyTest(const LatencyTest&) = delete;
    LatencyTest& operator=(const LatencyTest&) = delete;
    /// When an exception is on its way, the other ranks are told at once.
    ~LatencyTest();

    /// Ranks 0 and 1 play `rounds` rounds; the others look on. Returns the time of one way in
    /// microseconds (0 for those who look on). Throws std::runtime_error for a lost or wrong ball,
    /// and with fewer than two ranks.
    double ping_pong(Carrier carrier, std::uint32_t rounds);

    /// All ranks pass `rounds` barriers with `blocks` blocks of `threads` threads each. Returns the
    /// time of one barrier in microseconds, what each carried checked included. Throws
    /// std::runtime_error for a wrong board.
    double barriers(std::uint32_t rounds, unsigned blocks, unsigned threads);

private:
    /// Waits for the kernel, throws for what it complained of, and returns its time a round in
    /// microseconds.
    double finish(std::string_view what, std::uint32_t rounds);
    LatencyTestMemory* memory_of(int rank) const { return range_.at<LatencyTestMemory>(rank); }

    Rank& rank_;
    SymmetricRange range_;
    KernelTimeout timeout_;
    Stream stream_;
    Event start_;
    Event end_;
    std::uint32_t played_ = 0;    ///< Balls so far: numbers go on, so nothing is cleared.
    std::uint32_t barriers_ = 0;  ///< Barriers so far: boards alternate from game to game.
    std::uint64_t errors_ = 0;    ///< Told already.
};

}  // namespace symm
