#pragma once
/// \file
/// The latency test's kernels: a payload sent back and forth, and rounds of barriers. Both check
/// what arrives.

#include <cstdint>

#include "labs/05_device_prims/barrier.hpp"
#include "labs/05_device_prims/ll_packet.hpp"

namespace symm {

/// How the payload travels.
enum class Carrier : std::uint32_t {
    kSignal,   ///< The payload, then a flag with release; the receiver acquires.
    kRelaxed,  ///< No payload: a relaxed flag alone, to compare its time.
    kPacket,   ///< A packet that is both.
};

/// Each rank's symmetric memory for the latency test. Zeroed before the first use.
struct LatencyMemory {
    BarrierMemory barrier;
    alignas(128) std::uint32_t flag;  ///< Written by the other rank.
    std::uint64_t payload;            ///< Written by the other rank, before the flag.
    alignas(128) Packet slot;         ///< Written by the other rank: payload and flag in one.
    /// Written by this rank's blocks, read by all peers.
    alignas(128) std::uint64_t buffer[2][kMaxBarrierBlocks];
    std::uint64_t errors;  ///< Counted by this rank.
};

/// The payload of block `block` of rank `rank` in round `round`. No two payloads are equal.
__host__ __device__ inline std::uint64_t unique_payload(int rank, std::uint32_t round,
                                                        unsigned block = 0) {
    return (std::uint64_t{round} << 32) ^ (std::uint64_t{block} << 8) ^
           static_cast<std::uint64_t>(rank + 1);
}

/// One thread on each of two ranks sends `rounds` payloads and receives the same number, in turn,
/// so a round takes twice the latency. Needs one block of one thread. Both sides number the rounds
/// from `first`.
struct PingPong {
    LatencyMemory* local;
    LatencyMemory* remote;
    simt::Timeout timeout;
    Carrier carrier;
    int rank;
    int peer;
    std::uint32_t first;
    std::uint32_t rounds;

    __host__ __device__ void operator()(const simt::ThreadBlock&) const {
        simt::Waiter waiter(timeout);
        for (std::uint32_t round = first; round != first + rounds; ++round) {
            if (rank < peer) {
                send(round);
            }
            if (!receive(waiter, round)) {
                return;
            }
            if (rank > peer) {
                send(round);
            }
        }
    }

private:
    __host__ __device__ void send(std::uint32_t round) const {
        switch (carrier) {
            case Carrier::kSignal:
                remote->payload = unique_payload(rank, round);
                signal(&remote->flag, round);
                break;
            case Carrier::kRelaxed:
                signal<simt::Order::kRelaxed>(&remote->flag, round);
                break;
            case Carrier::kPacket:
                write_packet(&remote->slot, unique_payload(rank, round), round);
                break;
        }
    }

    /// False when the wait gave up.
    __host__ __device__ bool receive(simt::Waiter& waiter, std::uint32_t round) const {
        const simt::Waiting waiting{
            carrier == Carrier::kPacket ? simt::Wait::kPacket : simt::Wait::kSignal, rank, peer,
            round};
        std::uint64_t payload = unique_payload(peer, round);
        bool arrived = false;
        switch (carrier) {
            case Carrier::kSignal:
                arrived = wait_signal(waiter, &local->flag, waiting);
                if (arrived) {
                    payload = local->payload;
                }
                break;
            case Carrier::kRelaxed:
                arrived = wait_signal<simt::Order::kRelaxed>(waiter, &local->flag, waiting);
                break;
            case Carrier::kPacket:
                arrived = read_packet(waiter, &local->slot, waiting, payload);
                break;
        }
        if (arrived && payload != unique_payload(peer, round)) {
            local->errors += 1;
        }
        return arrived;
    }
};

/// Every block of every rank, `rounds` times: write to its own buffer, pass a barrier, read the
/// buffers of all ranks.
///
/// There are two buffers, used in turn: a rank that has left barrier k may write for round k + 1
/// while another still reads round k. Before it writes for round k + 2 it has passed barrier k + 1,
/// which every rank enters only after its reads of round k.
struct BarrierRounds {
    SymmetricPointer<LatencyMemory> memory;
    int rank;
    int ranks;
    simt::Timeout timeout;
    std::uint32_t first;
    std::uint32_t rounds;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const BarrierView view{memory.member(&LatencyMemory::barrier), rank, ranks};
        Barrier barrier(block, view, timeout);
        const unsigned b = block.group_index();
        for (std::uint32_t round = first; round != first + rounds; ++round) {
            // The last thread writes and the first ones signal: only the block's sync orders the
            // two.
            if (block.thread_rank() == block.size() - 1) {
                memory.of(rank)->buffer[round % 2][b] = unique_payload(rank, round, b);
            }
            if (!barrier.arrive_and_wait()) {
                return;
            }
            for (int peer = static_cast<int>(block.thread_rank()); peer < ranks;
                 peer += static_cast<int>(block.size())) {
                if (memory.of(peer)->buffer[round % 2][b] != unique_payload(peer, round, b)) {
                    simt::fetch_add(&memory.of(rank)->errors, std::uint64_t{1},
                                    simt::Order::kRelaxed);
                }
            }
        }
        barrier.store_epoch();
    }
};

}  // namespace symm
