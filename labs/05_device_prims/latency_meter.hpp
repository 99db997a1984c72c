#pragma once
/// \file
/// The latency test: sets up symmetric memory of all ranks, runs the primitives on it, checks what
/// arrives and measures the time.

#include <array>
#include <cstdint>
#include <string_view>

#include "common/cuda/event.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/stream.hpp"
#include "common/sys/named.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/latency_kernels.hpp"

namespace symm {

constexpr auto names_of(Carrier) {
    return names("Carrier", "signal", "relaxed", "packet");
}

/// One rank's latency test. Construction and all calls are collective: all ranks make them, in the
/// same order.
class LatencyMeter {
public:
    /// No wait in a kernel lasts longer than `limit`.
    explicit LatencyMeter(Rank& rank, std::chrono::nanoseconds limit = Deadline::standard_limit());
    LatencyMeter(const LatencyMeter&) = delete;
    /// If an exception destroys it, the other ranks are notified at once.
    ~LatencyMeter();

    /// Ranks 0 and 1 send a payload back and forth, `rounds` times; the other ranks wait for them.
    /// Returns the time of one way in microseconds (0 on the other ranks). Throws
    /// std::runtime_error for a lost or wrong payload, std::invalid_argument with fewer than two
    /// ranks.
    double ping_pong(Carrier carrier, std::uint32_t rounds);

    /// All ranks pass `rounds` barriers with `blocks` blocks of `threads` threads each. Returns the
    /// time of one barrier in microseconds, checks included. Throws std::runtime_error for a wrong
    /// value.
    double barriers(std::uint32_t rounds, unsigned blocks, unsigned threads);
    /// The flags of block 0 in this rank's inbox, by peer: numbers of barriers.
    std::array<std::uint32_t, kMaxBarrierRanks> inbox() const;
    /// How many blocks of barriers()'s kernel, of `threads` threads each, the current device keeps
    /// resident.
    static unsigned resident_blocks(unsigned threads);

private:
    /// Waits for the kernel, throws if it found wrong values, and returns its time per round in
    /// microseconds.
    double finish(std::string_view what, std::uint32_t rounds);
    LatencyMemory* memory_of(int rank) const { return range_.at<LatencyMemory>(rank); }

    Rank& rank_;
    SymmetricRange range_;
    KernelTimeout timeout_;
    Stream stream_;
    Event start_;
    Event end_;
    std::uint32_t rounds_ = 0;    ///< Sent so far. Never reset, so nothing has to be cleared.
    std::uint32_t barriers_ = 0;  ///< Passed so far. The two buffers alternate across calls.
    std::uint64_t errors_ = 0;    ///< Wrong values already reported.
};

}  // namespace symm
