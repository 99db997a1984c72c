#pragma once
/// \file
/// A trace: timed records of a block's activities, written while its kernel runs.
///
/// Each block has a ring buffer of records in device memory. When it begins an activity (waiting
/// for data or a free slot, moving data), thread 0 writes a timed record; the activity lasts until
/// the next. When the buffer is full, the oldest records are overwritten. The host reads when the
/// stream has finished (ring_trace.hpp), so nothing waits here and no order is needed.
///
/// Source: NCCL's kernels tell the host when a channel's work begins and ends (`ncclDevProfiler` in
/// src/include/device.h); here each step is recorded.

#include <cstddef>
#include <cstdint>

#include "common/simt/waiter.hpp"
#include "labs/05_device_prims/ring/primitives.hpp"

namespace symm {

enum class TraceEvent : std::uint8_t {
    kWaitData,   ///< Waits until the peer has sent the step.
    kWaitSpace,  ///< Waits until the peer has freed the step's slot.
    kMove,       ///< Makes `move`, and notifies the peers. LL and LL128 wait for data here.
    kEnd,        ///< The kernel is done.
};

struct TraceRecord {
    std::uint64_t time_ns;
    std::uint64_t received;  ///< Steps that came from the previous rank so far.
    std::uint64_t sent;      ///< Steps that went to the next rank so far.
    TraceEvent event;
    Move move;  ///< What the activity moves, if it is kMove.
};

/// Where the blocks of one rank write. A parameter of the kernel; the memory must live until the
/// kernel has ended.
struct TraceBuffers {
    TraceRecord* records = nullptr;   ///< `capacity` per block; null: nothing is recorded.
    std::uint32_t* counts = nullptr;  ///< Records written so far, per block.
    std::uint32_t capacity = 0;
};

/// Writes one block's records. Each thread has one; only thread 0's does anything.
class Tracer {
public:
    /// Records nothing.
    Tracer() = default;
    /// `count` is in the block's shared memory, so that it takes no register from the kernel.
    template <class Group>
    __host__ __device__ Tracer(const Group& group, const TraceBuffers& buffers, unsigned block,
                               std::uint32_t* count)
        : buffers_(&buffers),
          block_(block),
          count_(count),
          writes_(buffers.records != nullptr && group.thread_rank() == 0) {
        if (writes_) {
            *count_ = buffers_->counts[block_];
        }
    }

    /// Records that an activity begins now. `move` is for kMove.
    __host__ __device__ void record(TraceEvent event, std::uint64_t received, std::uint64_t sent,
                                    const Move& move = {}) const {
        if (writes_) {
            const std::size_t first = std::size_t{block_} * buffers_->capacity;
            buffers_->records[first + *count_ % buffers_->capacity] = {simt::now_ns(), received,
                                                                       sent, event, move};
            ++*count_;
        }
    }

    /// The last record of a kernel.
    __host__ __device__ void end(std::uint64_t received, std::uint64_t sent) const {
        record(TraceEvent::kEnd, received, sent);
        if (writes_) {
            buffers_->counts[block_] = *count_;
        }
    }

private:
    const TraceBuffers* buffers_ = nullptr;
    unsigned block_ = 0;
    std::uint32_t* count_ = nullptr;
    bool writes_ = false;
};

}  // namespace symm
