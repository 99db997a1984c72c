#pragma once
/// \file
/// The ranks meet at the beginning of a call, and exchange their buffers' addresses. Block b of a
/// rank has an inbox of two packets per peer (ll_packet.hpp). In its rendezvous number e with block
/// b of the other ranks (the lab's page has the proof):
///
/// | who         | does                                            | to what                | order     | why |
/// |-------------|-------------------------------------------------|------------------------|-----------|-----|
/// | thread p    | stores rank r's `in` and `out`, as addresses at which rank p has them mapped, with flag e | rank p's `inbox[b][r]` | relaxed   | earlier kernels of the stream have released their work, and this one has none yet |
/// | thread p    | polls until both packets have flag e            | its own `inbox[b][p]`  | acquire   | rank p's input may be read after it |
/// | thread p    | stores the addresses from the packets           | `all[p]`               | plain     | shared by the block, or global, for later kernels |
/// | all threads | `AbortBarrier::sync`                            |                        | block     | no thread uses `all` before it is complete, or all leave |

#include <cstddef>
#include <cstdint>

#include "common/simt/thread_block.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/05_device_prims/ll_packet.hpp"
#include "labs/06_allreduce/algorithms/call.hpp"

namespace symm {

/// Each rank's memory for its rendezvous: symmetric, zeroed before the first use.
struct RendezvousMemory {
    Packet inbox[kMaxBarrierBlocks][kMaxBarrierRanks][2];
    std::uint32_t epoch[kMaxBarrierBlocks];  ///< The number of each block's last rendezvous.
};

/// One rank's side: among a kernel's parameters.
struct Rendezvous {
    SymmetricPointer<RendezvousMemory> memory;
    int rank;
    int ranks;  ///< At most kMaxBarrierRanks.
    /// This rank's buffers, in each rank's addresses.
    Buffers mine[kMaxBarrierRanks];

    /// Fills `all` with every rank's buffers, in this rank's addresses. Every thread of the block
    /// calls it. Returns false, on all of them, if one gave up.
    __host__ __device__ bool meet(const simt::ThreadBlock& block, const simt::Timeout& timeout,
                                  Buffers* all) const {
        const unsigned b = block.group_index();
        const std::uint32_t epoch = memory.of(rank)->epoch[b] + 1;
        const int begin = static_cast<int>(block.thread_rank());
        const int step = static_cast<int>(block.size());
        simt::Waiter waiter(timeout);
        for (int p = begin; p < ranks && !waiter.gave_up(); p += step) {
            if (p != rank) {
                Packet* inbox = memory.of(p)->inbox[b][rank];
                write_packet<simt::Order::kReleasedByStream>(&inbox[0], mine[p].in, epoch);
                write_packet<simt::Order::kReleasedByStream>(&inbox[1], mine[p].out, epoch);
            }
        }
        bool arrived = true;
        for (int p = begin; p < ranks; p += step) {
            if (p == rank) {
                all[p] = mine[p];
            } else {
                arrived &= read(waiter, memory.of(rank)->inbox[b][p],
                                {simt::Wait::kBarrier, rank, p, epoch}, all[p]);
            }
        }
        const bool complete = AbortBarrier(block).sync(arrived);
        if (complete && begin == 0) {
            memory.of(rank)->epoch[b] = epoch;
        }
        return complete;
    }

private:
    __host__ __device__ static bool read(simt::Waiter& waiter, const Packet* inbox,
                                         const simt::Waiting& waiting, Buffers& buffers) {
        const auto epoch = static_cast<std::uint32_t>(waiting.expected);
        return waiter.until(waiting, [&](std::uint64_t& seen) {
            const Packet out = load_packet(&inbox[1]);  // one acquire is enough
            const Packet in = load_packet<simt::Order::kAcquire>(&inbox[0]);
            buffers = {in.data(), out.data()};
            seen = in.flag0;
            return in.has_flag(epoch) && out.has_flag(epoch);
        });
    }
};

}  // namespace symm
