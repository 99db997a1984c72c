#pragma once
/// \file
/// AllReduce in one shot: every rank sends all of its input to every other, in packets, and adds up
/// the packets that arrive.
///
/// For small sizes only latency counts, and one shot takes one trip over the link. It needs no
/// barrier before it: the packets go to scratch memory that is known to be free (scratch.hpp). It
/// needs no barrier after it: a packet carries its own flag. In epoch e, which uses bank e % 2 of
/// the scratch memory, thread i of rank r:
///
/// | does                               | to what                            | order   | why                  |
/// |------------------------------------|------------------------------------|---------|----------------------|
/// | stores packet i with flag e        | `scratch[bank][r][i]` of all peers | relaxed | data and flag are one |
/// | polls until all peers' flags are e | its own `scratch[bank][p][i]`      | relaxed | as above             |
/// | adds up, in the order of the ranks | `out[i]`                           | plain   | for this rank's stream only; the same bits on all ranks |
/// | clears one unused packet per peer  | its own `scratch[bank][p][e / 2 % per_sender]` | relaxed | no old flag may equal a later epoch: see below |
///
/// - No deadlock: a thread sends packet i before it waits for packet i of any peer, all threads run
///   at the same time, and none waits for another of its rank before its own waits have ended.
/// - The next call cannot overtake this one: see scratch.hpp. Unless it gives up, a kernel ends
///   only when it has loaded the packets of all peers.
/// - No old flag equals a later epoch, which wraps: a call clears one of each peer's `per_sender`
///   slots, in turn, unless it has just used it. With two banks, a slot's turn comes once in 2 x
///   `per_sender` calls (slot 0 misses its turn at the wrap, which skips epochs 0 and 1).
///
/// `./lab explore one_shot` runs every execution that the memory model allows.
/// Source: NCCL's src/device/symmetric/all_reduce.cuh (AGxLL_R).

#include <cstddef>
#include <cstdint>

#include "labs/05_device_prims/ll_packet.hpp"
#include "labs/06_allreduce/algorithms/scratch.hpp"

namespace symm {

/// The kernel, for at most kMost ranks: room for their data in registers. `per_sender` is a power
/// of two.
template <class T, int kMost>
struct OneShot : ScratchCall {
    static constexpr std::size_t kPerPacket = kPerPack<T, simt::Pack8>;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const std::uint32_t epoch = epochs->next(block);
        const std::size_t packets = (count + kPerPacket - 1) / kPerPacket;
        simt::Waiter waiter(timeout);
        // Once a wait has given up, in this call or an earlier one, sends nothing but still counts.
        for (std::size_t i = block.grid_rank(); i < packets && !waiter.gave_up();
             i += block.grid_size()) {
            const std::size_t at = i * kPerPacket;
            const auto own =
                load_elements<simt::Pack8>(reinterpret_cast<const T*>(in) + at, count - at);
            for (int step = 1; step < ranks; ++step) {
                write_packet(slot(peer(step), rank, epoch, i), own.bits, epoch);
            }
            simt::Pack8 data[kMost];
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {
                data[p] = own;
            }
            if (!receive(waiter, epoch, i, data)) {
                break;
            }
            store_elements(reinterpret_cast<T*>(out) + at, reduction.reduce<T>(data, ranks),
                           count - at);
        }
        clear_unused(block, epoch, packets);
        epochs->store(block, epoch);
    }

protected:
    /// The slot in `receiver`'s memory for packet i from `sender`.
    __host__ __device__ Packet* slot(int receiver, int sender, std::uint32_t epoch,
                                     std::size_t i) const {
        return reinterpret_cast<Packet*>(ScratchCall::slot(receiver, sender, epoch, i));
    }

    /// Polls packet i of all peers until all are there; leaves `data[rank]` alone. Returns false if
    /// the wait gave up.
    __host__ __device__ bool receive(simt::Waiter& waiter, std::uint32_t epoch, std::size_t i,
                                     simt::Pack8 (&data)[kMost]) const {
        simt::Waiting waiting{simt::Wait::kPacket, rank, rank, epoch};
        unsigned missing = ((1U << ranks) - 1) & ~(1U << rank);
        return missing == 0 || waiter.until(waiting, [&](std::uint64_t& seen) {
            Packet packet[kMost] = {};
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {  // all loads first: their latencies overlap
                if ((missing >> p & 1U) != 0) {
                    packet[p] = load_packet(slot(rank, p, epoch, i));
                }
            }
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {
                if ((missing >> p & 1U) == 0) {
                    continue;
                }
                if (packet[p].has_flag(epoch)) {
                    data[p].bits = packet[p].data();
                    missing &= ~(1U << p);
                } else {
                    waiting.peer = p;
                    seen = packet[p].flag0;
                }
            }
            return missing == 0;
        });
    }

    /// For each peer, clears the slot whose turn it is, unless this call has just used it.
    __host__ __device__ void clear_unused(const simt::ThreadBlock& block, std::uint32_t epoch,
                                          std::size_t packets) const {
        const std::size_t i = epoch / 2 & (per_sender - 1);
        for (std::size_t step = 1 + block.grid_rank(); step < static_cast<std::size_t>(ranks);
             step += block.grid_size()) {
            if (i >= packets) {
                write_packet(slot(rank, peer(static_cast<int>(step)), epoch, i), 0, 0);
            }
        }
    }
};

}  // namespace symm
