#pragma once
/// \file
/// The ranks of an AllReduce, their windows, and the call itself.

#include <cuda.h>

#include <cstddef>
#include <list>
#include <optional>

#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/stream.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/06_allreduce/residency.hpp"
#include "labs/06_allreduce/tuner.hpp"

namespace symm {

/// How a communicator is built. The same on all ranks.
struct CommunicatorOptions {
    /// No wait in a kernel lasts longer.
    std::chrono::nanoseconds limit = Deadline::standard_limit();
    /// The most blocks of a launch; 0: as many as the device keeps resident, at most kMaxBlocks.
    /// Several communicators on one device share what it keeps (residency.hpp).
    unsigned max_blocks = 0;
};

/// One rank's communicator, as ncclComm. Construction, windows and calls are collective: all ranks,
/// in the same order. Calls are asynchronous and belong to one stream at a time: two in flight at
/// once would share flags.
class Communicator {
public:
    /// Throws std::invalid_argument for more than kMaxAllReduceRanks ranks, and where the device
    /// cannot keep its blocks resident beside those of the other communicators.
    explicit Communicator(Rank& rank, const CommunicatorOptions& options = {});
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;
    /// When an exception is on its way, first ends the kernels that may wait for other ranks.
    ~Communicator();

    /// Bytes of device memory that a communicator of `ranks` takes on each, beside its windows.
    static std::size_t state_bytes(int ranks);

    int rank() const { return rank_.rank(); }
    int ranks() const { return rank_.size(); }

    /// A window of new memory, `bytes` on every rank: ncclMemAlloc and ncclCommWindowRegister in
    /// one. Returns this rank's address of it. It lives until release() or as long as the
    /// communicator.
    CUdeviceptr allocate(std::size_t bytes);
    /// Makes a window of memory that each rank has (from mem_alloc, say): ncclCommWindowRegister.
    /// The memory stays the caller's; the address to use is the one given back.
    CUdeviceptr register_memory(CUdeviceptr pointer, std::size_t bytes);
    /// Gives a window back. Collective; waits for the work of all ranks, so that none still uses
    /// it. Throws std::invalid_argument for an address that allocate() or register_memory() did not
    /// return.
    void release(CUdeviceptr window);

    /// Queues: `out[i]` becomes the sum over all ranks of `in[i]`, on every rank, the same bits.
    /// `in` and `out` hold `count` elements each: the same buffer, or two that do not overlap, at
    /// multiples of the element's size (of 16 bytes for speed). For twoshot, at the same place of
    /// the same windows on all ranks; for auto, in windows on all ranks or on none.
    /// Returns what was chosen. Throws std::invalid_argument for what cannot be done, CudaError.
    CallPlan all_reduce(CUdeviceptr in, CUdeviceptr out, std::size_t count, DataType type,
                        ReduceOp op, CUstream stream, Algorithm asked = Algorithm::kAuto);

    /// Waits for the stream. Throws where a kernel gave up waiting, saying for whom, and where a
    /// rank has failed or is gone, which ends the kernels that wait for it; after that the
    /// communicator can only be destroyed.
    void synchronize(const Stream& stream, std::string_view what) {
        timeout_.synchronize(stream, what, [&] { rank_.bootstrap().throw_async_error(what); });
    }

private:
    /// A place in a window, as every rank sees it.
    struct Place {
        CUdeviceptr of_rank_0;
        std::size_t stride;
    };
    std::optional<Place> find(CUdeviceptr pointer, std::size_t bytes) const;
    void zero_state();

    Rank& rank_;
    SymmetricRange state_;  ///< BarrierMemory, OneShotMemory, then the packets' banks.
    KernelTimeout timeout_;
    Shape most_;  ///< What each launch may have.
    std::optional<ResidencyShare> share_;
    std::list<SymmetricRange> windows_;
};

}  // namespace symm
