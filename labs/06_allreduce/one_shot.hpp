#pragma once
/// \file
/// AllReduce in one shot: everybody sends everything to everybody, in packets, and adds up what
/// comes.
///
/// Latency is all that counts for small sizes, and this has one trip of it: no barrier before (the
/// packets go to scratch memory that is free by construction) and none after (a packet is its own
/// flag). Thread i of rank r, in call e, whose bank is e % 2:
///
/// | does                               | to what                         | order   | why         |
/// |------------------------------------|---------------------------------|---------|-------------|
/// | stores packet i with flag e        | `scratch[bank][r][i]` of all peers | relaxed | data and flag are one |
/// | polls until all peers' flags are e | its own `scratch[bank][p][i]`   | relaxed | as above    |
/// | adds up, in the order of the ranks | `out[i]`                        | plain   | for this rank's stream only |
///
/// - e counts the calls, in device memory (`OneShotMemory::calls`), so a replayed graph counts on.
///   Flags are never cleared: a slot's old flag is e - 2 or older.
///   (Or e itself, 2^32 - 2 calls ago.)
/// - It cannot deadlock: packet i is sent before packet i of any peer is waited for, all threads of
///   all ranks run at once, and no thread waits for another of its rank.
/// - The next call cannot overtake it: call e + 1 uses the other bank. Call e + 2 uses this one
///   again, and a rank that begins e + 2 has ended e + 1, so every peer had sent packets of e + 1,
///   so every peer's kernel of call e had ended before, and with it all reading of this bank.
/// - All ranks add in the order 0, 1, 2 ...: their results agree to the last bit.
///
/// Source: NCCL's src/device/symmetric/all_reduce.cuh (AGxLL_R) and
/// src/include/nccl_device/ll_a2a.h.

#include <cstddef>
#include <cstdint>

#include "common/simt/thread_block.hpp"
#include "common/simt/unroll.hpp"
#include "labs/05_device_prims/packet.hpp"
#include "labs/06_allreduce/element.hpp"

namespace symm {

inline constexpr unsigned kMaxBlocks = 128;
inline constexpr int kMaxAllReduceRanks = 8;

/// What each rank keeps for one-shot calls, in symmetric memory, zeroed before first use; its banks
/// follow.
struct OneShotMemory {
    /// Calls so far. One counter a block, all equal between kernels; each is read by the block of
    /// its number alone, so that no block can see another's update too early.
    std::uint32_t calls[kMaxBlocks];
};

/// The number of the next call. Never 0, which is what fresh memory holds; even numbers keep
/// following odd ones when it wraps, since the bank is its lowest bit.
__host__ __device__ inline std::uint32_t next_call(std::uint32_t calls) {
    return calls + 1 == 0 ? 2 : calls + 1;
}

/// The kernel: any count from 1, any alignment of the elements' own.
template <class Element, int kRanks>
struct OneShot {
    static constexpr int kPerPacket = 2 * Element::kPerWord;
    using Storage = typename Element::Storage;

    const Storage* in;
    Storage* out;
    std::size_t count;
    OneShotMemory* memory;         ///< This rank's.
    simt::Pack16* scratch;         ///< Rank 0's banks: `[2][kRanks][packets_per_bank]`.
    std::size_t stride;            ///< From one rank's scratch to the next, bytes.
    std::size_t packets_per_bank;  ///< Packets of one sender in one bank.
    simt::Timeout timeout;
    int rank;
    bool aligned;  ///< `in` and `out` are multiples of 8 bytes.

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const unsigned b = block.group_index();
        const std::uint32_t call = next_call(memory->calls[b]);
        const std::size_t packets = (count + kPerPacket - 1) / kPerPacket;
        for (std::size_t i = block.grid_rank(); i < packets; i += block.grid_size()) {
            const std::uint64_t mine = load_elements(i);
            for (int step = 1; step < kRanks; ++step) {
                const int peer = (rank + step) % kRanks;  // each rank begins with another peer
                write_packet(slot(peer, call, rank, i), mine, call);
            }
            store_elements(i, sum(call, i, mine));
        }
        block.sync();  // every thread has read its counter
        // This block's own counter, and those of blocks that this launch does not have.
        for (unsigned j = b + block.thread_rank() * block.dim_blocks(); j < kMaxBlocks;
             j += block.size() * block.dim_blocks()) {
            memory->calls[j] = call;
        }
    }

private:
    /// Packet i that `sender` has for `receiver`.
    __host__ __device__ simt::Pack16* slot(int receiver, std::uint32_t call, int sender,
                                           std::size_t i) const {
        simt::Pack16* banks = reinterpret_cast<simt::Pack16*>(
            reinterpret_cast<char*>(scratch) + static_cast<std::size_t>(receiver) * stride);
        return banks + ((call % 2) * kRanks + static_cast<std::size_t>(sender)) * packets_per_bank +
               i;
    }

    /// Polls all peers' packets at once, each until it has come, then adds up.
    __host__ __device__ std::uint64_t sum(std::uint32_t call, std::size_t i,
                                          std::uint64_t mine) const {
        simt::Pack16 packets[kRanks] = {};  // for a wait that gives up
        simt::Waiting waiting{simt::Wait::kPacket, rank, rank, call};
        unsigned missing = ((1U << kRanks) - 1) & ~(1U << rank);
        timeout.until(waiting, [&](std::uint64_t& seen) {
            SYMM_UNROLL
            for (int p = 0; p < kRanks; ++p) {  // all loads first: they cross memory together
                if ((missing >> p & 1U) != 0) {
                    packets[p] = simt::load_relaxed(slot(rank, call, p, i));
                }
            }
            SYMM_UNROLL
            for (int p = 0; p < kRanks; ++p) {
                if ((missing >> p & 1U) == 0) {
                    continue;
                }
                if (has_flag(packets[p], call)) {
                    missing &= ~(1U << p);
                } else {
                    waiting.peer = p;
                    seen = packets[p].half[0] >> 32;
                }
            }
            return missing == 0;
        });
        Sums<Element, 2> sums(words_of(rank == 0 ? mine : data_of(packets[0])).word);
        SYMM_UNROLL
        for (int p = 1; p < kRanks; ++p) {
            sums.add(words_of(rank == p ? mine : data_of(packets[p])).word);
        }
        Words result;
        sums.store(result.word);
        return result.word[0] | (std::uint64_t{result.word[1]} << 32);
    }

    struct Words {
        std::uint32_t word[2];
    };
    __host__ __device__ static Words words_of(std::uint64_t data) {
        return {{static_cast<std::uint32_t>(data), static_cast<std::uint32_t>(data >> 32)}};
    }

    __host__ __device__ bool is_whole(std::size_t i) const {
        return aligned && (i + 1) * kPerPacket <= count;
    }

    __host__ __device__ std::uint64_t load_elements(std::size_t i) const {
        if (is_whole(i)) {
            return reinterpret_cast<const simt::Pack8*>(in)[i].bits;
        }
        Storage elements[kPerPacket] = {};
        for (int e = 0; e < kPerPacket && i * kPerPacket + e < count; ++e) {
            elements[e] = in[i * kPerPacket + e];
        }
        return bits_as<std::uint64_t>(elements);
    }

    __host__ __device__ void store_elements(std::size_t i, std::uint64_t data) const {
        if (is_whole(i)) {
            reinterpret_cast<simt::Pack8*>(out)[i].bits = data;
            return;
        }
        Storage elements[kPerPacket];
        memcpy(elements, &data, sizeof(data));
        for (int e = 0; e < kPerPacket && i * kPerPacket + e < count; ++e) {
            out[i * kPerPacket + e] = elements[e];
        }
    }
};

}  // namespace symm
