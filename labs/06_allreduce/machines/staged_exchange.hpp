#pragma once
/// \file
/// An exchange through host memory, for engines that the host calls: one thread calls the engine,
/// while the GPU goes on.
///
/// A part is the data of one start() (exchange.hpp); at most `depth()` are in progress. Part k:
///
/// | step     | by                | does                                       | order   | waits for                 |
/// |----------|-------------------|--------------------------------------------|---------|---------------------------|
/// | copy out | stream `out`      | copies the buffer to `stage[k % depth]`, then whether the communicator has given up | | the caller's stream so far (event) |
/// | exchange | this rank's thread | sends, and adds up in the order of the machines | plain | copy out (it checks the event) |
/// | post     | the same thread   | stores k to `done`, in pinned host memory  | release | exchange                  |
/// | wait     | kernel in stream `in` | polls `done` until it has reached k; where it gives up, so do the communicator's later kernels | acquire | copy out (event), post |
/// | copy in  | stream `in`       | copies `stage[k % depth]` to the buffer    |         | wait (stream)             |
/// | finish   | the caller's stream | goes on                                  |         | copy in (event)           |
///
/// - No deadlock: an exchange waits for the kernels that made part k, on all machines, and for
///   nothing else that needs a multiprocessor.
/// - Part k + depth cannot overtake part k: it is started after the caller's stream has passed
///   finish of part k, and copy out waits for that stream.
/// - The bits are the same on all machines: each machine adds up a chunk for all of them.
/// - Every wait ends, and a rank that has not given up has right results (README.md).
///
/// Source: NCCL's proxy thread (src/proxy.cc), which also sends for kernels; lab 04's proxy.hpp.

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/cuda/event.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/pinned_memory.hpp"
#include "common/cuda/stream.hpp"
#include "common/ranks/rank.hpp"
#include "labs/06_allreduce/machines/exchange.hpp"
#include "labs/06_allreduce/machines/rail.hpp"

namespace symm {

/// `to[i]` becomes the reduction of element i of all sources, in their order.
void reduce_on_host(const RailCall& call, const std::vector<const std::byte*>& sources,
                    std::byte* to, std::size_t count);
/// Queues the kernel that waits until `*done` has reached `part`. If it gives up, the later kernels
/// of `rank` with `kernels` give up.
void launch_await_part(CUstream stream, const simt::Timeout& timeout, const simt::Timeout& kernels,
                       int rank, const std::uint32_t* done, std::uint32_t part);
/// Queues a kernel that does not wait: if the host has aborted `timeout`, the same happens.
void launch_require_part(CUstream stream, const simt::Timeout& timeout,
                         const simt::Timeout& kernels, int rank);

class StagedExchange final : public Exchange {
public:
    /// For parts of at most `most_bytes`. No part takes longer than `limit`, which should be less
    /// than the communicator's: then the rail names the missing machine before other ranks of this
    /// machine give up waiting for this one. The rank's device must be current.
    StagedExchange(const Rank& rank, std::unique_ptr<Rail> rail, std::size_t most_bytes,
                   std::chrono::nanoseconds limit = Deadline::standard_limit() * 3 / 4);
    StagedExchange(const StagedExchange&) = delete;
    StagedExchange& operator=(const StagedExchange&) = delete;
    /// Ends all parts in flight.
    ~StagedExchange() override;

    int machine() const override { return rail_->machine(); }
    int machines() const override { return rail_->machines(); }
    std::size_t depth() const override { return kDepth; }
    void require_possible(std::size_t bytes, CUstream stream) override;
    void start(const RailCall& call, CUdeviceptr buffer, CUstream stream,
               const simt::Timeout& kernels) override;
    void finish(CUstream stream) override;
    void throw_if_failed() override;
    void fail(std::string_view text) noexcept override;

private:
    static constexpr std::size_t kDepth = 2;
    /// A part for the thread. The host queues parts, and reuses stages, long before the thread
    /// reaches them.
    struct Part {
        std::uint32_t number;
        RailCall call;
        Event copied_out{CU_EVENT_DISABLE_TIMING};
    };
    std::byte* stage_of(std::uint32_t part) const;
    /// Whether the kernels before a part had given up, in pinned memory.
    std::uint32_t* gave_up(std::uint32_t part) const;
    /// The thread's work.
    void run();
    /// The next part; empty when this ends.
    std::optional<Part> next_part();
    /// Whether the part's data is in its stage; false when this ends.
    bool wait_for_copy(const Part& part);
    void exchange(const Part& part);
    /// Records whether the thread uses a stage. Returns false if this has failed.
    bool use_stage(bool uses);
    void require_same(const RailCall& call, Deadline deadline);

    int rank_;
    const Device& device_;
    std::unique_ptr<Rail> rail_;
    std::size_t most_bytes_;
    std::chrono::nanoseconds limit_;
    KernelTimeout timeout_;
    PinnedMemory memory_;             ///< `done`, then the stages.
    std::vector<std::byte> arrived_;  ///< A chunk of each machine.
    Event ready_{CU_EVENT_DISABLE_TIMING};
    Event copied_in_[kDepth]{Event(CU_EVENT_DISABLE_TIMING), Event(CU_EVENT_DISABLE_TIMING)};
    Stream out_;
    Stream in_;
    std::uint32_t started_ = 0;
    std::uint32_t finished_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Part> queue_;  ///< Parts that the thread has not taken.
    std::string failure_;
    bool ends_ = false;
    bool uses_stage_ = false;
    std::thread thread_;
};

}  // namespace symm
