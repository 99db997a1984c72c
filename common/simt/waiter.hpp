#pragma once
/// \file
/// The one place where kernels spin: waits with a timeout, and an abort flag that ends them. The
/// host's side is common/cuda/kernel_timeout.hpp; docs/FAILURES.md describes how a failure spreads.
///
/// | word               | lies in       | written by                       | read by                          |
/// |--------------------|---------------|----------------------------------|----------------------------------|
/// | a wait's own flag  | (the caller's)| a peer                           | the waiting thread, at each poll |
/// | `*gave_up`         | device memory | threads of this device (compare-and-swap) | waiting threads, every kPollsPerLook polls |
/// | `report->abort`    | host memory   | threads of the host              | waiting threads, every kPollsPerHostLook polls |
/// | rest of `*report`  | host memory   | the thread that set `*gave_up`   | the host, when the stream has finished |
///
/// The order of a wait's own flag is the caller's. `*gave_up` and `abort` are relaxed, since no
/// other data depends on them; the rest of the report is ordered by the end of the kernel. In host
/// memory each word has one writer, since some buses between host and device have no atomics.
///
/// Giving up ends the kernel: the first thread that times out sets `*gave_up`, and from then on the
/// waits of this rank's kernels return false as soon as their thread looks at it, in this kernel
/// and in those queued after it. A thread that gets false leaves its loop and sends no signals.
/// Threads of a block that must leave together call ThreadBlock::sync_or().
///
/// Source: NCCL's checkAbort (src/device/primitives.h) and its `abortFlag`.

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>

#include "common/simt/atomic.hpp"
#include "common/simt/back_off.hpp"

namespace symm::simt {

/// The event that a kernel was waiting for (waiter.cpp turns it into a sentence).
enum class Wait : std::uint32_t {
    kNothing,
    kSignal,     ///< A flag that a peer writes.
    kBarrier,    ///< The arrival of all ranks.
    kPacket,     ///< Data that carries its own flag.
    kLine,       ///< Eight lanes' data with one flag.
    kFifoData,   ///< A filled slot of a FIFO.
    kFifoSpace,  ///< A free slot of a FIFO.
    kTurn,       ///< A receiver that another rank still sends to (lab 06).
    kArrivals,   ///< The additions of all ranks to a count (lab 05's multicast barrier).
    // No waits from here on.
    kFifoMessage,  ///< The FIFO brought a message of unexpected length.
    kFifoEntry,    ///< A FIFO entry points outside the buffer.
    kTrust,        ///< The peer gave up, and may have spoilt what this rank was using.
    kMachines,     ///< The exchange with other machines failed (symm/nodes).
    kDescriptor,   ///< An entry of lab 04's unpack queue points outside the buffers.
};

/// Which rank waits for what.
struct Waiting {
    Wait what;
    int rank;
    int peer;
    std::uint64_t expected;
    int block = -1;                ///< -1: not given. On a GPU fail() fills it in.
    std::uint64_t step = kNoStep;  ///< A connection's (lab 04), if there is one.
    static constexpr std::uint64_t kNoStep = ~std::uint64_t{0};
};

/// Why a kernel gave up. In pinned host memory, zeroed; one per rank.
struct WaitReport {
    std::uint32_t abort;   ///< The host asks all waits to end: not 0.
    std::uint32_t failed;  ///< A kernel gave up by itself: the rest tells why.
    Waiting waiting;
    std::uint64_t seen;  ///< The value that was there instead of `waiting.expected`.
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

/// How long a kernel may wait, and where it reports that it gave up. A parameter of the kernel.
struct Timeout {
    std::uint32_t* gave_up;  ///< In device memory of the kernel's own device.
    WaitReport* report;      ///< In pinned host memory.
    std::uint64_t limit_ns;  ///< How long one wait may last (KernelTimeout, CommunicatorOptions).
};

/// One thread's waits in one kernel. Waits are counted as well as polls, so that a kernel of many
/// short waits looks at the abort flag too.
class Waiter {
public:
    /// `timeout` must outlive the Waiter.
    __host__ __device__ explicit Waiter(const Timeout& timeout)
        : timeout_(timeout), gave_up_(load(timeout.gave_up, Order::kRelaxed) != 0) {}
    Waiter(const Waiter&) = delete;

    /// Whether a wait gave up: an earlier one of this thread, or of a kernel before this one.
    /// Then send nothing: a peer would take it for the signal that this rank no longer sends.
    __host__ __device__ bool gave_up() const { return gave_up_; }

    /// Polls until `poll(seen)` is true; the poll stores what it saw in `seen`, for the report.
    /// Returns false when this wait, or an earlier one of this rank, gave up: then leave the
    /// kernel's loop.
    template <class Poll>
    __host__ __device__ bool until(const Waiting& waiting, Poll&& poll) {
        std::uint64_t seen = 0;
        if constexpr (kExplored) {  // instead of polls, every way in which the wait may end
            const Awaited ended =
                gave_up_ ? Awaited::kAnother : await([&] { return poll(seen); }, timeout_.gave_up);
            if (ended == Awaited::kTimeIsOver) {
                fail(waiting, seen);
            }
            gave_up_ = ended != Awaited::kTrue;
            return !gave_up_;
        }
        std::uint64_t start = 0;  // read at the first host look: most waits end before that
        [[maybe_unused]] int round = 0;
        count_ += kPollsPerWait;
        if (count_ - host_look_ >= kPollsPerHostLook) {
            look(waiting, seen, start);
        }
        while (!gave_up_) {
            // Nothing but polls in this loop: latency counts.
            for (std::uint32_t i = 0; i < kPollsPerLook; ++i) {
                if (poll(seen)) {
                    return true;
                }
                NV_IF_TARGET(NV_IS_HOST, (back_off(round++);))
            }
            count_ += kPollsPerLook;
            look(waiting, seen, start);
            // A long wait can spare 0.5 us: its polls then cause less memory traffic.
            NV_IF_TARGET(NV_IS_DEVICE, (if (start != 0) { __nanosleep(500); }))
        }
        return false;
    }

    /// The same for a wait that mostly ends within microseconds: polls at first without a look at
    /// anything else. On two H200s an AllReduce of 1K takes 0.1 us less.
    template <class Poll>
    __host__ __device__ bool until_soon(const Waiting& waiting, Poll&& poll) {
        if constexpr (!kExplored) {
            std::uint64_t seen = 0;
            int polls = 1024;
            NV_IF_TARGET(NV_IS_HOST, (polls = 1;))  // an emulated GPU backs off between polls
            for (int i = 0; i < polls && !gave_up_; ++i) {
                if (poll(seen)) {
                    return true;
                }
            }
        }
        return until(waiting, poll);
    }

    /// Ends the waits of this rank's kernels. The first call fills in the report.
    __host__ __device__ void fail(const Waiting& waiting, std::uint64_t seen) {
        gave_up_ = true;
        if (claim(timeout_.gave_up, std::uint32_t{0}, std::uint32_t{1})) {
            timeout_.report->waiting = waiting;
            // Not blockIdx: nvcc would keep that in a register through all waits.
            NV_IF_TARGET(NV_IS_DEVICE, (asm volatile("mov.u32 %0, %ctaid.x;"
                                                     : "=r"(timeout_.report->waiting.block));))
            timeout_.report->seen = seen;
            timeout_.report->failed = 1;
        }
    }

private:
    /// On H200s, thousands of threads that read host memory every 64 polls kept each other from
    /// polling: an AllReduce of 64K on four ranks took 240 us instead of 5. NCCL, too, looks only
    /// every 10,000 polls.
#ifdef __CUDA_ARCH__
    static constexpr std::uint32_t kPollsPerLook = 64;
    static constexpr std::uint32_t kPollsPerHostLook = 8192;
    static constexpr std::uint32_t kPollsPerWait = 8;  ///< A wait counts as this many polls.
#else
    static constexpr std::uint32_t kPollsPerLook = 1;
    static constexpr std::uint32_t kPollsPerHostLook = 2;  ///< As on a GPU, the first wait of a
                                                           ///< kernel may end without a look.
    static constexpr std::uint32_t kPollsPerWait = 1;
#endif

    /// Gives up if another thread has. Every kPollsPerHostLook polls it also checks the abort flag
    /// and the time.
    __host__ __device__ void look(const Waiting& waiting, std::uint64_t seen,
                                  std::uint64_t& start) {
        gave_up_ = load(timeout_.gave_up, Order::kRelaxed) != 0;
        if (gave_up_ || count_ - host_look_ < kPollsPerHostLook) {
            return;
        }
        host_look_ = count_;
        if (load(&timeout_.report->abort, Order::kRelaxed) != 0) {
            gave_up_ = true;
            claim(timeout_.gave_up, std::uint32_t{0}, std::uint32_t{1});  // for all other threads
        } else if (start == 0) {
            start = now_ns();
        } else if (now_ns() - start > timeout_.limit_ns) {
            fail(waiting, seen);
        }
    }

    const Timeout& timeout_;
    std::uint32_t count_ = 0;      ///< Polls in whole rounds, and kPollsPerWait per wait.
    std::uint32_t host_look_ = 0;  ///< `count_` at the last look at host memory.
    bool gave_up_;
};

/// Throws std::runtime_error where a kernel gave up, with the report as a sentence: `rank 1 waited
/// 10 s in a kernel for a signal ...`. Call it once the stream has finished.
void throw_if_gave_up(const WaitReport& report, std::uint64_t limit_ns);

}  // namespace symm::simt
