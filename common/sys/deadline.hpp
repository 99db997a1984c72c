#pragma once
/// \file
/// A point in time by which a wait must have ended. Every wait for another rank or process has one.

#include <algorithm>
#include <chrono>
#include <limits>

namespace symm {

/// A point in time on the steady clock. Copied into nested waits, so that they share one limit.
class Deadline {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::hours kLongest{24 * 365 * 10};  ///< As good as for ever.

    /// The point in time `limit` from now: at once if it is negative, and at most kLongest.
    static Deadline after(std::chrono::nanoseconds limit) {
        limit = std::clamp<std::chrono::nanoseconds>(limit, std::chrono::nanoseconds{0}, kLongest);
        return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(limit), limit);
    }
    /// The deadline of another process: all processes of a machine share the steady clock.
    static Deadline at(Clock::time_point end, std::chrono::nanoseconds limit) {
        return Deadline(end, limit);
    }
    static Deadline earlier(Deadline a, Deadline b) { return a.end_ <= b.end_ ? a : b; }
    /// SYMM_TIMEOUT from now.
    static Deadline standard();
    /// SYMM_TIMEOUT; 30 s if it is not set. Throws UsageError if it is not understood.
    static std::chrono::nanoseconds standard_limit();

    Clock::time_point end() const { return end_; }
    [[nodiscard]] bool passed() const { return Clock::now() >= end_; }
    /// The time left, never negative.
    std::chrono::nanoseconds left() const {
        return std::max<std::chrono::nanoseconds>(end_ - Clock::now(), std::chrono::nanoseconds{0});
    }
    /// The time left in whole milliseconds, rounded up, as poll(2) takes it.
    int left_ms() const {
        const auto ms = (left() + std::chrono::nanoseconds{999'999}).count() / 1'000'000;
        return static_cast<int>(std::min<long>(ms, std::numeric_limits<int>::max()));
    }
    std::chrono::nanoseconds limit() const { return limit_; }
    /// The limit in seconds, for messages.
    double seconds() const { return std::chrono::duration<double>(limit_).count(); }

private:
    Deadline(Clock::time_point end, std::chrono::nanoseconds limit) : end_(end), limit_(limit) {}
    Clock::time_point end_;
    std::chrono::nanoseconds limit_;
};

}  // namespace symm
