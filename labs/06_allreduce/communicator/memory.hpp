#pragma once
/// \file
/// A communicator's symmetric memory on each rank: flags and counters, then the scratch memory of
/// three algorithms (scratch.hpp).
///
///     | CommunicatorMemory | one shot's packets | sentinel's packs | push's packs |
///     |      zeros         |       zeros        |          sentinels              |

#include <cstddef>

#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/06_allreduce/algorithms/scratch.hpp"
#include "labs/06_allreduce/algorithms/two_shot/rendezvous.hpp"
#include "labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp"
#include "labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp"
#include "labs/06_allreduce/tuning/tuner.hpp"

namespace symm {

/// Each member, and the data after them, starts on a cache line: with scratch memory in the
/// middle of one, 4M took 16.1 us instead of 15.0 on two H200s.
struct CommunicatorMemory {
    alignas(128) BarrierMemory barrier;
    alignas(128) RendezvousMemory rendezvous;
    alignas(128) ChunksMemory chunks;
    alignas(128) CopyMemory copy;
    alignas(128) TrustMemory trust;
    alignas(128) Epochs one_shot;
    alignas(128) Epochs sentinel;
    alignas(128) Epochs push;
    alignas(128) simt::Pack16 scratch[1];
};

/// Where an algorithm's part of the memory is.
struct ScratchPlace {
    Epochs CommunicatorMemory::*epochs;
    std::size_t offset;   ///< Where its first slot is in each rank's memory, in bytes.
    unsigned per_sender;  ///< Slots of one sender in one bank, or one region of a bank.
    unsigned regions;     ///< A bank has this many.

    std::size_t end(int ranks) const {
        return offset + std::size_t{ScratchCall::kBanks} * regions *
                            static_cast<unsigned>(ranks - 1) * per_sender * sizeof(simt::Pack16);
    }
};

/// Of one shot, the sentinel or push.
ScratchPlace scratch_place(Algorithm algorithm, int ranks);

/// Fills this rank's memory with its initial contents. Throws CudaError.
void initialize(const SymmetricRange& memory, int ranks);

}  // namespace symm
