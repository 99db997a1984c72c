#pragma once
/// \file
/// The primitives at work: a ball played to and fro, and rounds of barriers. Both check what they
/// carry.

#include <cstdint>

#include "labs/05_device_prims/barrier.hpp"
#include "labs/05_device_prims/packet.hpp"

namespace symm {

/// What carries the ball.
enum class Carrier : std::uint32_t {
    kSignal,   ///< Data, then a flag with release; the other side acquires.
    kRelaxed,  ///< A flag alone.
    kPacket,   ///< A packet that is both.
};

/// What each rank of the latency_test keeps in symmetric memory. Zeroed before first use.
struct LatencyTestMemory {
    BarrierMemory barrier;
    std::uint32_t flag;              ///< Written by the other player.
    alignas(16) std::uint64_t ball;  ///< Written by the other player, before the flag.
    simt::Pack16 slot;               ///< Written by the other player: ball and flag in one.
    std::uint64_t board[2]
                       [kMaxBarrierBlocks];  ///< Written by this rank's blocks, read by all peers.
    std::uint64_t errors;                    ///< Counted by this rank.
};

/// What rank `rank` sends in round `round` from its block `block`: no other rank, round or block
/// sends it.
__host__ __device__ inline std::uint64_t unique_ball(int rank, std::uint32_t round,
                                                     unsigned block = 0) {
    return (std::uint64_t{round} << 32) ^ (std::uint64_t{block} << 8) ^
           static_cast<std::uint64_t>(rank + 1);
}

/// One thread of two ranks each: `rounds` times there and back. The time of a round is two
/// latencies. One block of one thread; rounds are numbered from `first`, on both sides the same.
struct PingPong {
    LatencyTestMemory* mine;
    LatencyTestMemory* theirs;
    simt::Timeout timeout;
    Carrier carrier;
    int rank;
    int peer;
    std::uint32_t first;
    std::uint32_t rounds;

    __host__ __device__ void operator()(const simt::ThreadBlock&) const {
        for (std::uint32_t round = first; round != first + rounds; ++round) {
            if (rank < peer) {
                serve(round);
                take(round);
            } else {
                take(round);
                serve(round);
            }
        }
    }

private:
    __host__ __device__ void serve(std::uint32_t round) const {
        switch (carrier) {
            case Carrier::kSignal:
                theirs->ball = unique_ball(rank, round);
                signal(&theirs->flag, round);
                break;
            case Carrier::kRelaxed:
                signal_relaxed(&theirs->flag, round);
                break;
            case Carrier::kPacket:
                write_packet(&theirs->slot, unique_ball(rank, round), round);
                break;
        }
    }

    __host__ __device__ void take(std::uint32_t round) const {
        const simt::Waiting waiting{
            carrier == Carrier::kPacket ? simt::Wait::kPacket : simt::Wait::kSignal, rank, peer,
            round};
        std::uint64_t ball = unique_ball(peer, round);
        switch (carrier) {
            case Carrier::kSignal:
                if (wait_signal(timeout, &mine->flag, waiting)) {
                    ball = mine->ball;
                }
                break;
            case Carrier::kRelaxed:
                wait_signal_relaxed(timeout, &mine->flag, waiting);
                break;
            case Carrier::kPacket:
                ball = read_packet(timeout, &mine->slot, waiting);
                break;
        }
        if (ball != unique_ball(peer, round)) {
            mine->errors += 1;
        }
    }
};

/// Every block of every rank: write on the own board, meet, read all boards; `rounds` times.
///
/// Two boards in turn: a rank that has left barrier k may write for round k + 1 while another still
/// reads round k. For round k + 2 it has passed barrier k + 1, which every rank enters when it has
/// done with k.
struct BarrierRounds {
    BarrierView view;
    LatencyTestMemory* first_memory;  ///< Rank 0's.
    simt::Timeout timeout;
    std::uint32_t first;
    std::uint32_t rounds;

    __host__ __device__ LatencyTestMemory* memory_of(int rank) const {
        return reinterpret_cast<LatencyTestMemory*>(reinterpret_cast<char*>(first_memory) +
                                                    static_cast<std::size_t>(rank) * view.stride);
    }

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        Barrier barrier(block, view, timeout);
        const unsigned b = block.group_index();
        for (std::uint32_t round = first; round != first + rounds; ++round) {
            // The last thread writes, the first ones signal: only the block's sync joins them.
            if (block.thread_rank() == block.size() - 1) {
                memory_of(view.rank)->board[round % 2][b] = unique_ball(view.rank, round, b);
            }
            if (!barrier.arrive_and_wait()) {
                return;
            }
            for (int peer = static_cast<int>(block.thread_rank()); peer < view.ranks;
                 peer += static_cast<int>(block.size())) {
                if (memory_of(peer)->board[round % 2][b] != unique_ball(peer, round, b)) {
                    simt::fetch_add(&memory_of(view.rank)->errors, std::uint64_t{1},
                                    simt::Order::kRelaxed);
                }
            }
        }
        barrier.store_epoch();
    }
};

}  // namespace symm
