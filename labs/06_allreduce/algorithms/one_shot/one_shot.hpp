#pragma once
/// \file
/// AllReduce in one shot: every rank sends all of its input to every other, in packets, and adds up
/// what arrives.
///
/// For small sizes only latency counts, and one shot takes one trip over the link. It needs no
/// barrier before it: the packets go to scratch memory that is known to be free. It needs no
/// barrier after it: a packet carries its own flag. In epoch e (the number of the call), which uses
/// bank e % 2 of the scratch memory, thread i of rank r:
///
/// | does                               | to what                            | order   | why                  |
/// |------------------------------------|------------------------------------|---------|----------------------|
/// | stores packet i with flag e        | `scratch[bank][r][i]` of all peers | relaxed | data and flag are one |
/// | polls until all peers' flags are e | its own `scratch[bank][p][i]`      | relaxed | as above             |
/// | adds up, in the order of the ranks | `out[i]`                           | plain   | for this rank's stream only |
/// | clears one unused packet per peer  | its own `scratch[bank][p][e / 2 % per_sender]` | relaxed | no old flag may equal a later epoch: see below |
///
/// - Epochs are counted in device memory (`OneShotMemory::epochs`), so a replayed graph continues
///   the count.
/// - No old flag equals a later epoch: each call clears one slot of its bank unless it has just
///   used it, so no flag stays in a slot for more than 2 x `per_sender` calls. So the 32 bits
///   of an epoch may wrap.
/// - No deadlock: a thread sends packet i before it waits for packet i of any peer, all threads of
///   all ranks run at the same time, and no thread waits for another thread of its rank before its
///   own waits have ended.
/// - The next call cannot overtake this one: epoch e + 1 uses the other bank. Epoch e + 2 uses this
///   bank again. A rank that begins e + 2 has ended e + 1, so every peer has sent packets of e + 1,
///   so every peer's kernel of epoch e has ended, and with it all its reading and clearing of this
///   bank.
/// - All ranks add in the order 0, 1, 2 ...: their results agree to the last bit.
///
/// Source: NCCL's src/device/symmetric/all_reduce.cuh (AGxLL_R) and
/// src/include/nccl_device/ll_a2a.h.

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "common/simt/thread_block.hpp"
#include "labs/05_device_prims/packet.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"

namespace symm {

inline constexpr unsigned kMaxBlocks = 264;  ///< Of a launch.

/// What each rank keeps for one-shot calls, in symmetric memory, zeroed before the first use. The
/// banks come after it.
struct OneShotMemory {
    /// Calls so far. One counter per block, all equal between kernels. Block b reads counter b
    /// only, so that no block can see another's update too early.
    std::uint32_t epochs[kMaxBlocks];

    /// Counts a call, when all threads of the block have read their counter: sets this block's, and
    /// those of blocks that this launch does not have.
    __host__ __device__ void store_epoch(const simt::ThreadBlock& block, std::uint32_t epoch) {
        block.sync();
        for (unsigned b = block.group_index() + block.thread_rank() * block.dim_blocks();
             b < kMaxBlocks; b += block.size() * block.dim_blocks()) {
            epochs[b] = epoch;
        }
    }
};

/// The next epoch. Never 0, which is what zeroed memory holds. After 2^32 - 1, which is odd, comes
/// 2: the lowest bit chooses the bank, and banks must alternate.
__host__ __device__ inline std::uint32_t next_epoch(std::uint32_t epoch) {
    return epoch + 1 == 0 ? 2 : epoch + 1;
}

/// What the kernel of a call through scratch memory is given, whatever the type and the algorithm.
struct ScratchCall {
    CUdeviceptr in;  ///< `in` and `out` need only the alignment of an element; 16 is faster.
    CUdeviceptr out;
    std::size_t count;  ///< Elements, from 1.
    Reduction reduction;
    OneShotMemory* memory;   ///< This rank's; each algorithm has its own.
    simt::Pack16* scratch;   ///< Rank 0's banks. Here: `[2][ranks][per_sender]`.
    std::size_t stride;      ///< From one rank's scratch to the next, bytes.
    std::size_t per_sender;  ///< Packets of one sender in one bank: here a power of two.
    simt::Timeout timeout;
    int rank;
    int ranks;

    /// A rank's banks.
    __host__ __device__ simt::Pack16* banks_of(int receiver) const {
        return reinterpret_cast<simt::Pack16*>(reinterpret_cast<char*>(scratch) +
                                               static_cast<std::size_t>(receiver) * stride);
    }
    /// The peer that is `step` ranks behind this one: each rank begins with another one.
    __host__ __device__ int peer(int step) const {
        return rank + step < ranks ? rank + step : rank + step - ranks;
    }
};

/// The kernel, for at most kMost ranks: room for their data in registers.
template <class T, int kMost>
struct OneShot : ScratchCall {
    static constexpr std::size_t kPerPacket = kPerPack<T, simt::Pack8>;
    static constexpr unsigned kBanks = 2;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const std::uint32_t epoch = next_epoch(memory->epochs[block.group_index()]);
        const std::size_t packets = (count + kPerPacket - 1) / kPerPacket;
        simt::Waiter waiter(timeout);
        // A rank that gave up in an earlier call sends nothing: a peer would take it as that one's.
        for (std::size_t i = block.grid_rank(); i < packets && !waiter.gave_up();
             i += block.grid_size()) {
            const std::size_t at = i * kPerPacket;
            const auto own =
                load_elements<simt::Pack8>(reinterpret_cast<const T*>(in) + at, count - at);
            for (int step = 1; step < ranks; ++step) {
                write_packet(slot(peer(step), epoch, rank, i), own.bits, epoch);
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
        memory->store_epoch(block, epoch);
    }

private:
    /// The slot in `receiver`'s memory for packet i from `sender`.
    __host__ __device__ simt::Pack16* slot(int receiver, std::uint32_t epoch, int sender,
                                           std::size_t i) const {
        const auto row =
            static_cast<std::size_t>(static_cast<int>(epoch % kBanks) * ranks + sender);
        return banks_of(receiver) + row * per_sender + i;
    }

    /// Polls packet i of all peers at once, until all have arrived. Returns false when the wait
    /// gave up.
    __host__ __device__ bool receive(simt::Waiter& waiter, std::uint32_t epoch, std::size_t i,
                                     simt::Pack8 (&data)[kMost]) const {
        simt::Waiting waiting{simt::Wait::kPacket, rank, rank, epoch};
        unsigned missing = ((1U << ranks) - 1) & ~(1U << rank);
        return missing == 0 || waiter.until(waiting, [&](std::uint64_t& seen) {
            simt::Pack16 packet[kMost] = {};
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {  // all loads first: their latencies overlap
                if ((missing >> p & 1U) != 0) {
                    packet[p] = simt::load_relaxed(slot(rank, epoch, p, i));
                }
            }
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {
                if ((missing >> p & 1U) == 0) {
                    continue;
                }
                if (has_flag(packet[p], epoch)) {
                    data[p].bits = data_of(packet[p]);
                    missing &= ~(1U << p);
                } else {
                    waiting.peer = p;
                    seen = packet[p].half[0] >> 32;
                }
            }
            return missing == 0;
        });
    }

    /// For each peer, clears the slot whose turn it is, unless this call has just used it.
    __host__ __device__ void clear_unused(const simt::ThreadBlock& block, std::uint32_t epoch,
                                          std::size_t packets) const {
        const std::size_t i = epoch / 2 & (per_sender - 1);
        for (std::size_t p = block.grid_rank(); p < static_cast<std::size_t>(ranks);
             p += block.grid_size()) {
            if (i >= packets) {
                simt::store_relaxed(slot(rank, epoch, static_cast<int>(p), i), simt::Pack16{});
            }
        }
    }
};

}  // namespace symm
