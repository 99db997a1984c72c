#pragma once
/// \file
/// The one place where kernels spin, with a deadline.
///
/// | who                    | does                                      | to what      | order   |
/// |------------------------|-------------------------------------------|--------------|---------|
/// | a waiting thread       | polls until true or the time is over      | its flag     | its own |
/// | the first out of time  | claims the report (compare-and-swap) and fills it in | WaitReport | relaxed |
/// | other waiting threads  | look now and then, and give up as well    | WaitReport::state | relaxed |
/// | the host               | sets it to end a kernel early             | WaitReport::state | relaxed |
/// | the host               | reads it when the stream has finished     | WaitReport   | the stream's |
///
/// A wait that gives up returns false and the kernel goes on: every later wait gives up at its
/// first look, so the kernel ends by itself, wrong data and all, and the host throws. No thread returns early, so no block hangs in `sync()`.

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "common/simt/atomic.hpp"

namespace symm::simt {

/// What a kernel was waiting for, in words a person reads (timeout.cpp turns it into a sentence).
enum class Wait : std::uint32_t {
    kNothing,
    kSignal,     ///< A flag a peer writes.
    kBarrier,    ///< All ranks' arrival.
    kPacket,     ///< Data that carries its own flag.
    kFifoData,   ///< A filled slot of a FIFO.
    kFifoSpace,  ///< A free slot of a FIFO.
};

/// Where a kernel tells that it gave up waiting. Lives in pinned host memory, zeroed; one a
/// kernel's launching rank.
struct WaitReport {
    static constexpr std::uint32_t kRunning = 0;   ///< Go on.
    static constexpr std::uint32_t kAborted = 1;   ///< The host asked to stop.
    static constexpr std::uint32_t kTimedOut = 2;  ///< A wait's time was over; the rest says which.

    std::uint32_t state;
    Wait waiting_for;
    std::int32_t rank;
    std::int32_t peer;
    std::uint64_t expected;
    std::uint64_t seen;
};

/// Who waits for what: copied into the report by the wait that gives up first.
struct Waiting {
    Wait what;
    int rank;
    int peer;
    std::uint64_t expected;
};

/// Nanoseconds of a clock that all threads of a device share.
__host__ __device__ inline std::uint64_t now_ns() {
    NV_IF_ELSE_TARGET(
        NV_IS_DEVICE,
        (std::uint64_t time; asm volatile("mov.u64 %0, %globaltimer;"
                                          : "=l"(time));
         return time;),
        (return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                               std::chrono::steady_clock::now().time_since_epoch())
                                               .count());))
}

/// A kernel's patience. Part of its parameters.
struct Timeout {
    WaitReport* report;      ///< In memory that the device and the host see.
    std::uint64_t limit_ns;  ///< How long one wait may last.

    /// Polls until `poll(seen)` is true; `seen` takes what the poll saw, for the report. Returns
    /// false when it gave up.
    template <class Poll>
    __host__ __device__ bool until(const Waiting& waiting, Poll&& poll) const {
        std::uint64_t seen = 0;
        // On a host, where a look costs nothing, a kernel that has been given up ends at once.
        NV_IF_TARGET(NV_IS_HOST, (if (load(&report->state, Order::kRelaxed) !=
                                      WaitReport::kRunning) { return false; }))
        // The common case costs no clock: most waits end within a few polls.
        for (int i = 0; i < kPollsBeforeClock; ++i) {
            if (poll(seen)) {
                return true;
            }
        }
        const std::uint64_t start = now_ns();
        while (true) {
            for (int i = 0; i < kPollsBetweenLooks; ++i) {
                if (poll(seen)) {
                    return true;
                }
                // A host thread that spins keeps another from getting on.
                NV_IF_TARGET(NV_IS_HOST, (std::this_thread::yield();))
            }
            if (load(&report->state, Order::kRelaxed) != WaitReport::kRunning) {
                return false;
            }
            if (now_ns() - start > limit_ns) {
                give_up(waiting, seen);
                return false;
            }
        }
    }

private:
    static constexpr int kPollsBeforeClock = 4;
    /// The report lies in host memory. On H200s, thousands of threads that looked there every 64 polls
    /// kept each other from polling: 64K among four took 240 us instead of 5. NCCL looks every 10,000 as well.
    static constexpr int kPollsBetweenLooks =
#ifdef __CUDA_ARCH__
        10'000;
#else
        64;
#endif

    __host__ __device__ void give_up(const Waiting& waiting, std::uint64_t seen) const {
        if (claim(&report->state, WaitReport::kRunning, WaitReport::kTimedOut)) {
            report->waiting_for = waiting.what;
            report->rank = waiting.rank;
            report->peer = waiting.peer;
            report->expected = waiting.expected;
            report->seen = seen;
        }
    }
};

/// The report as a sentence: `rank 1 waited 10.0 s for a signal from rank 0: expected 3, saw 2`.
std::string describe(const WaitReport& report, std::uint64_t limit_ns);

/// Throws std::runtime_error with that sentence where a wait gave up. Call it once the stream has
/// finished.
void throw_if_timed_out(const WaitReport& report, std::uint64_t limit_ns);

}  // namespace symm::simt
