#pragma once
/// \file
/// What a communicator gives to a kernel of your own. A kernel is a struct that derives from
/// MailboxParams, with `__host__ __device__ void operator()(const simt::ThreadBlock&)
/// const`. symm/collectives/README.md builds two collectives, and has a table of what a kernel
/// gets.
///
/// The rules for every kernel: all ranks launch the same number of blocks and threads, at most
/// most(); every wait goes through a MailboxSession, Rendezvous, Barrier, Turns or a simt::Waiter;
/// a thread whose wait gave up writes no output and sends nothing more; and in each launch every
/// rank receives something from every other, by the mailbox or a barrier: without that the next
/// call could overtake this one.

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <string_view>

#include "common/cuda/gpu.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "labs/06_allreduce/communicator/own_memory.hpp"

namespace symm {

/// What the kernels of a collective need. The same on all ranks.
struct OwnNeeds {
    /// Slots for what a rank sends to one peer in one launch; a power of two for Packets. 0: no
    /// mailbox.
    unsigned slots_per_peer = 0;
    /// Whether the mailbox's format is SentinelPacks (or one whose empty slots hold only one bits).
    bool has_sentinel = false;
    /// The most threads of a block. Emulated GPUs, where a thread costs far more, take 32.
    unsigned threads = 512;
    /// How many blocks of so many threads the current device keeps resident: the fewest of all
    /// kernels (resident_blocks<Kernel>() of occupancy.hpp).
    std::function<unsigned(unsigned threads)> resident;
};

/// One rank's side of a collective of your own: its memory on every rank, and its calls, which take
/// turns with the communicator's. Used by the communicator's thread.
class OwnCollective {
public:
    /// Its memory lives as long as the communicator, which must outlive it. Collective. Throws
    /// std::invalid_argument if a device cannot keep a block of each rank resident, or for more
    /// than kMaxRanksOnGpus ranks.
    OwnCollective(Communicator& communicator, const OwnNeeds& needs);

    int rank() const { return communicator_.rank(); }
    int ranks() const { return communicator_.ranks(); }
    /// The most blocks and threads of a launch. Kernels with a barrier take at most
    /// kMaxBarrierBlocks blocks.
    const LaunchShape& most() const { return most_; }

    /// For launch(), if the kernel begins with ThreadBlock::wait_for_predecessor(), as a
    /// MailboxSession does.
    LaunchOrder launch_order(unsigned blocks) const { return communicator_.launch_order(blocks); }

    /// Parameters of a launch. `call.in`, `call.out` and the rest are for the kernel alone. Sums
    /// (`reduction`) are in the order of the ranks.
    MailboxParams call(const Call& call) const;
    /// For Rendezvous::meet, which tells every rank where this rank's two buffers are. A buffer
    /// outside of windows can be passed if no peer uses it.
    Rendezvous meeting(CUdeviceptr in, CUdeviceptr out, std::size_t bytes) const;
    BarrierView barrier() const;
    SymmetricPointer<TurnsMemory> turns() const;
    /// Whether peers can reach these bytes.
    bool is_in_window(CUdeviceptr pointer, std::size_t bytes) const {
        return communicator_.find_window(pointer, bytes).has_value();
    }

    /// Makes a call: calls `check`, which throws std::invalid_argument to refuse it, then `queue`,
    /// which launches its kernels on the stream. `text` names the call and all that the ranks must
    /// pass alike: with SYMM_CHECK=1 all ranks throw, before anything is queued, if their texts
    /// differ or one refuses. Without it see Communicator::all_reduce() for what a refusal does.
    void queue(std::string_view text, CUstream stream, const std::function<void()>& check,
               const std::function<void()>& queue) const {
        communicator_.queue_own(text, stream, check, queue);
    }

private:
    Communicator& communicator_;
    unsigned slots_;
    LaunchShape most_;
    SymmetricPointer<OwnMemory> memory_;
};

}  // namespace symm
