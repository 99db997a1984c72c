#pragma once
/// \file
/// The host's side of a kernel's timeout: the abort flag, and the kernel's report as an exception.

#include <chrono>
#include <functional>
#include <string_view>

#include "common/cuda/device_memory.hpp"
#include "common/cuda/pinned_memory.hpp"
#include "common/cuda/stream.hpp"
#include "common/simt/waiter.hpp"
#include "common/sys/creator_process.hpp"
#include "common/sys/deadline.hpp"

namespace symm {

/// Owns the abort flag and the report of one rank's kernels, which have `timeout()` among their
/// parameters. Move-only.
class KernelTimeout {
public:
    /// No single wait in a kernel lasts longer than `limit` (30 s, or SYMM_TIMEOUT). Needs a
    /// current context: the kernels'.
    explicit KernelTimeout(std::chrono::nanoseconds limit = Deadline::standard_limit());

    simt::Timeout timeout() const {
        return {gave_up_.as<std::uint32_t>(), report(), static_cast<std::uint64_t>(limit_.count())};
    }

    /// Waits for the stream. Throws std::invalid_argument, and changes nothing, if it is being
    /// captured. Then throws std::runtime_error with the kernel's report if one of
    /// its waits gave up. If the kernels still run after the limit although no single wait gave
    /// up, they are aborted first, and the exception says so.
    ///
    /// `meanwhile` (see Stream::synchronize) may throw because a peer is gone. Then the kernels'
    /// waits end, and once the stream has finished, that exception is thrown, if one of them did
    /// wait: a peer may also have ended because its work is done.
    void synchronize(const Stream& stream, std::string_view what,
                     const std::function<void()>& meanwhile = {});

    /// Does not wait. Throws std::runtime_error if a wait has given up or abort() was called.
    void throw_if_gave_up() const;

    /// Whether throw_if_gave_up() would throw. Both need a current context after end_waits().
    [[nodiscard]] bool has_given_up() const;

    /// Sets the abort flag: all waits of kernels with this timeout end, also in kernels launched
    /// later. From any thread. Does nothing in a child of fork(), whose parent's kernels they are.
    void abort();
    /// As abort(), but no error if no kernel is waiting, now or later: for a thread that does not
    /// know whether kernels are in flight. From any thread.
    void end_waits();

    /// Whether this process made it: its kernels are not those of a child that fork() made.
    bool is_in_creator() const { return creator_.is_this_one(); }

private:
    simt::WaitReport* report() const { return report_.as<simt::WaitReport>(); }

    DeviceMemory gave_up_;  ///< One word, set by the first thread that gives up.
    PinnedMemory report_;   ///< A simt::WaitReport, which has the abort flag.
    std::chrono::nanoseconds limit_;
    CreatorProcess creator_;
};

}  // namespace symm
