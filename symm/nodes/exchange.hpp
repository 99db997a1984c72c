#pragma once
/// \file
/// Between machines: carries data where GPUs cannot reach each other's memory.
///
/// Ranks with the same number on all machines are a *rail*. An exchange is one rank's connection to
/// its rail, and adds up buffers along it. Part k is the data of the k-th start(): it is copied to
/// host memory, where one thread calls the rail (rail.hpp) while the GPU goes on, and back once a
/// kernel has seen that the thread is done. README.md has the table of these steps, and the proofs.
///
/// Source: NCCL's proxy thread (src/proxy.cc), which also sends for kernels; a rail is what NCCL's
/// kernels call it (ncclTeamRail), and UCC's `cl_hier` (split_rail).

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
#include "common/sys/creator_process.hpp"
#include "labs/05_device_prims/reduction/data_type.hpp"
#include "symm/nodes/rail.hpp"

namespace symm {

/// The reduction that a rail's ranks do, and the call that it belongs to. The same on all of them.
struct RailCall {
    std::size_t number;  ///< The number of the AllReduce, from 1 on.
    std::size_t all;     ///< Elements of the AllReduce.
    std::size_t begin;   ///< The part's first element.
    std::size_t count;   ///< Elements of the part.
    DataType type;
    ReduceOp op;
    int ranks;  ///< All machines' ranks together, for kAvg.
    bool operator==(const RailCall&) const = default;
};

/// `to[i]` becomes the reduction of element i of all sources, in their order.
void reduce_on_host(const RailCall& call, const std::vector<const std::byte*>& sources,
                    std::byte* to, std::size_t count);
/// Queues the kernel that waits until `*done` has reached `part`. If it gives up, the later kernels
/// of `rank` with `kernels` give up.
void launch_await_part(CUstream stream, const simt::Timeout& timeout, const simt::Timeout& kernels,
                       int rank, const std::uint32_t* done, std::uint32_t part);

/// One rank's side. All ranks of a rail make the same calls in the same order.
class Exchange {
public:
    /// No part takes longer than `limit`, which should be less than the communicator's: then the
    /// rail names the missing machine before other ranks of this machine give up waiting for this
    /// one. The rank's device must be current.
    Exchange(Rank& rank, std::unique_ptr<Rail> rail,
             std::chrono::nanoseconds limit = Deadline::standard_limit() * 3 / 4);
    Exchange(const Exchange&) = delete;
    /// Ends all parts in flight. Does nothing in a child of fork(), nor does fail().
    ~Exchange();

    /// This rank's machine, and the number of machines.
    int machine() const { return rail_->machine(); }
    int machines() const { return rail_->machines(); }
    /// How many parts may be started and not yet finished.
    static constexpr std::size_t kDepth = 2;
    /// The most bytes of a part.
    static std::size_t part_bytes();

    /// Throws what start() would throw to refuse a part: std::invalid_argument if the stream is
    /// being captured, std::runtime_error if a part has failed. Does not wait.
    void require_possible(CUstream stream);
    /// Queues, after the work already in the stream: `buffer`, of at most part_bytes(), becomes
    /// the reduction of all machines' buffers. It may be used after finish(). If the part fails,
    /// the kernels with `kernels` that are queued after finish() give up: they must not send what
    /// is in the buffer. Does not wait. Throws CudaError, and as require_possible(); a part that
    /// start() refuses is not counted.
    void start(const RailCall& call, CUdeviceptr buffer, CUstream stream,
               const simt::Timeout& kernels);
    /// Makes the stream wait for the oldest unfinished part.
    void finish(CUstream stream);

    /// Throws std::runtime_error if a part has failed, naming the machine to blame. The contents of
    /// its buffer are then undefined. Does not wait.
    void throw_if_failed();
    /// Ends all waits, here and on the other machines that can be notified. After that the exchange
    /// can only be destroyed.
    void fail(std::string_view text) noexcept;

private:
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
    [[nodiscard]] std::optional<Part> next_part();
    /// Whether the part's data is in its stage; false when this ends.
    [[nodiscard]] bool wait_for_copy(const Part& part);
    void exchange(const Part& part);
    /// Records whether the thread uses a stage. Returns false if this has failed.
    bool use_stage(bool uses);
    void require_same(const RailCall& call, Deadline deadline);

    int rank_;
    Bootstrap& bootstrap_;
    const Device& device_;
    std::unique_ptr<Rail> rail_;
    std::size_t stage_bytes_;
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
    NotInChild<std::condition_variable> changed_;
    std::deque<Part> queue_;  ///< Parts that the thread has not taken.
    std::string failure_;
    bool ends_ = false;
    bool uses_stage_ = false;
    CreatorProcess creator_;
    NotInChild<std::thread> thread_;
};

}  // namespace symm
