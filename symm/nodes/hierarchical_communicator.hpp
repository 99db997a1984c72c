#pragma once
/// \file
/// An AllReduce over several machines, in three steps: a ReduceScatter inside of each machine, an
/// AllReduce of each part across the machines, an AllGather inside.
///
/// Each machine has n ranks, and rank r of each is on rail r (exchange.hpp). Only data that is
/// already added up leaves its machine: 1/n of the bytes for each rank, over its own network
/// card. A call is cut into pieces of n parts, Exchange::kDepth of which may be on their way. The
/// last elements, fewer than n, have no parts: each local rank reduces all of them. README.md has
/// the table of steps, and the proofs.

#include <functional>
#include <vector>

#include "labs/06_allreduce/communicator/communicator.hpp"
#include "symm/nodes/exchange.hpp"

namespace symm {

class HierarchicalCommunicator {
public:
    /// Collective: all ranks of all machines, with the same options. Rank and exchange must outlive
    /// it.
    HierarchicalCommunicator(Rank& inside, Exchange& across,
                             const CommunicatorOptions& options = {});
    HierarchicalCommunicator(const HierarchicalCommunicator&) = delete;
    /// As ~Communicator.
    ~HierarchicalCommunicator();

    /// This rank among all ranks: machine by machine.
    int rank() const { return across_.machine() * inside_.ranks() + inside_.rank(); }
    int ranks() const { return across_.machines() * inside_.ranks(); }

    /// The communicator of the machine, for windows: buffers that lie in windows are reduced where
    /// they are.
    Communicator& inside() { return inside_; }

    /// Queues the call: `out[i]` becomes the reduction of `in[i]` of all ranks of all machines.
    /// Otherwise as Communicator::all_reduce, except for the bits (README.md), and that the
    /// exchange may refuse a stream that is being captured.
    ///
    /// A call that throws std::invalid_argument has queued nothing. If other ranks have made it,
    /// this rank's next call throws, as Communicator's does, or all find that machines make
    /// different calls. After any other exception the communicator can only be destroyed.
    void all_reduce(CUdeviceptr in, CUdeviceptr out, std::size_t count, DataType type, ReduceOp op,
                    CUstream stream);

    /// Waits for the stream. Throws if a rank of any machine has failed or is gone, and says why: a
    /// rank that hears of a failure, from its machine or its rail, tells the other of the two.
    /// After that it can only be destroyed.
    void synchronize(const Stream& stream, std::string_view what);

private:
    /// Calls `step`. If that throws anything but std::invalid_argument, tells the others why.
    void or_tell(const std::function<void()>& step);
    /// Ends this rank's kernels, and tells the ranks of this machine and of the rail.
    void tell(std::string_view reason) noexcept;
    void queue(CUdeviceptr in, CUdeviceptr out, const RailCall& call, CUstream stream);

    Rank& rank_;
    Exchange& across_;
    Communicator inside_;
    std::vector<CUdeviceptr> parts_;  ///< One for each part that may be on its way.
    std::size_t calls_ = 0;
    std::size_t started_ = 0;
    std::size_t finished_ = 0;
};

}  // namespace symm
