#pragma once
/// \file
/// The engine between machines: it carries data where GPUs cannot reach each other's memory.
///
/// Ranks with the same number on all machines are a *rail*. An exchange is one rank's connection to
/// its rail, and adds up buffers along it. This library itself uses no network; an engine does:
/// threads that stand for machines (thread_rail.hpp), MPI (mpi_rail.hpp) or NCCL
/// (nccl_exchange.hpp).
///
/// Source: a rail is what NCCL's kernels call it (ncclTeamRail), and UCC's `cl_hier` (split_rail).

#include <cuda.h>

#include <cstddef>
#include <string_view>

#include "common/simt/waiter.hpp"
#include "labs/05_device_prims/reduction/data_type.hpp"

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

/// One rank's side. All ranks of a rail make the same calls in the same order.
class Exchange {
public:
    virtual ~Exchange() = default;

    /// This rank's machine, and the number of machines.
    virtual int machine() const = 0;
    virtual int machines() const = 0;
    /// How many parts may be started and not yet finished.
    virtual std::size_t depth() const = 0;

    /// Throws what start() would throw to refuse parts of `bytes`: std::invalid_argument if the
    /// stream is being captured and that is not possible, std::logic_error if there is no room,
    /// std::runtime_error if a part has failed. Does not wait.
    virtual void require_possible(std::size_t bytes, CUstream stream) = 0;
    /// Queues, after the work already in the stream: `buffer`, of `call.count` elements, becomes
    /// the reduction of all machines' buffers. It may be used after finish(). If the part fails,
    /// the kernels with `kernels` that are queued after finish() give up: they must not send what
    /// is in the buffer. Does not wait. Throws CudaError, and as require_possible(); a part that
    /// start() refuses is not counted.
    virtual void start(const RailCall& call, CUdeviceptr buffer, CUstream stream,
                       const simt::Timeout& kernels) = 0;
    /// Makes the stream wait for the oldest unfinished part.
    virtual void finish(CUstream stream) = 0;

    /// Throws std::runtime_error if a part has failed, naming the machine to blame. The contents of
    /// its buffer are then undefined. Does not wait.
    virtual void throw_if_failed() = 0;
    /// Ends all waits, here and on the other machines that can be notified. After that the exchange
    /// can only be destroyed.
    virtual void fail(std::string_view text) noexcept = 0;
};

}  // namespace symm
