#pragma once
/// \file
/// Rung 2, one shot with a barrier: GPUs store into each other's memory. Each rank stores its input
/// into a slot on every rank, a barrier says when all inputs are there, and each adds them up.
///
/// The library has no such algorithm: rung 3 needs no barrier. What it shares with the real ones is
/// the barrier (lab 05's barrier.hpp) and the banks (mailbox/README.md).

#include "labs/06_allreduce/algorithms/ladder/rung.hpp"

namespace symm::ladder {

struct WithBarrier : Rung {
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const std::uint32_t epoch = epochs->next(block);
        const simt::Waiter waiter(timeout);  // after a call that gave up, nothing is sent
        for (std::size_t i = block.grid_rank(); i < packs() && !waiter.gave_up();
             i += block.grid_size()) {
            for (int p = 0; p < ranks; ++p) {
                *slot(p, rank, epoch, i) = load(in.of(rank), i);
            }
        }
        Barrier all(block, barrier, timeout);
        if (!all.arrive_and_wait()) {
            return;
        }
        all.store_epoch();
        for (std::size_t i = block.grid_rank(); i < packs(); i += block.grid_size()) {
            Pack sum{};
            for (int p = 0; p < ranks; ++p) {
                add(sum, p, *slot(rank, p, epoch, i));
            }
            store(out.of(rank), i, sum);
        }
        epochs->store(block, epoch);
    }
};

}  // namespace symm::ladder
