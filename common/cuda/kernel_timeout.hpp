#pragma once
/// \file
/// The host's side of a kernel's deadline: where the kernel reports, and what becomes of the
/// report.

#include "common/cuda/pinned_memory.hpp"
#include "common/cuda/stream.hpp"
#include "common/simt/timeout.hpp"
#include "common/sys/deadline.hpp"

namespace symm {

/// Owns the WaitReport of one rank's kernels. Kernels are given `timeout()` among their parameters.
class KernelTimeout {
public:
    /// No single wait in a kernel lasts longer than `limit`. Needs a current context.
    explicit KernelTimeout(std::chrono::nanoseconds limit = Deadline::standard_limit());

    std::chrono::nanoseconds limit() const { return limit_; }
    simt::Timeout timeout() const { return {report(), static_cast<std::uint64_t>(limit_.count())}; }

    /// Waits for the stream, then throws std::runtime_error with the kernel's own words where one
    /// of its waits gave up. A stream that goes on beyond the limit (many waits, or none that
    /// looks) is first asked to give up, and its kernel's report is what is thrown.
    ///
    /// `meanwhile` (see Stream::synchronize) may throw because a peer that the kernel waits for is gone:
    /// then the kernel is asked to give up, and that is what is thrown once it has ended.
    void synchronize(const Stream& stream, std::string_view what,
                     const std::function<void()>& meanwhile = {});

    /// Makes every waiting kernel that has this timeout give up, now and later. From any thread.
    void abort();
    /// Forgets a former report. Only while no kernel uses it.
    void reset();

private:
    simt::WaitReport* report() const { return memory_.as<simt::WaitReport>(); }

    PinnedMemory memory_;
    std::chrono::nanoseconds limit_;
};

}  // namespace symm
