#pragma once
/// \file
/// Rung 6, push: two shots without a barrier and without loads over a link. Both shots only store,
/// into slots with the sentinel: inputs go to the rank that adds them up, sums go to all. Two trips
/// instead of five.
///
/// The real one (push/push.hpp) loads what it sends before the first store, and does not fill up
/// the last parts with zeros. Here all parts have the same size, so each rank hears from each.

#include "labs/06_allreduce/algorithms/ladder/4_sentinel.hpp"

namespace symm::ladder {

struct ByPush : Rung {
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const std::uint32_t epoch = epochs->next(block);
        const std::size_t part = (packs() + static_cast<unsigned>(ranks) - 1) /
                                 static_cast<unsigned>(ranks);  // packs of each rank's part
        const std::size_t sums = per_sender / 2;                // inputs come in the slots before
        simt::Waiter waiter(timeout);
        for (std::size_t j = block.grid_rank(); j < part && !waiter.gave_up();
             j += block.grid_size()) {
            for (int p = 0; p < ranks; ++p) {
                const Pack input = load(in.of(rank), static_cast<unsigned>(p) * part + j);
                simt::store_relaxed(slot(p, rank, epoch, j), without_sentinel(input));
            }
        }
        for (std::size_t j = block.grid_rank(); j < part; j += block.grid_size()) {
            Pack sum{};
            for (int p = 0; p < ranks; ++p) {
                Pack next{};
                take(waiter, slot(rank, p, epoch, j), {simt::Wait::kPacket, rank, p, epoch}, next);
                add(sum, p, next);
            }
            for (int p = 0; p < ranks && !waiter.gave_up(); ++p) {
                simt::store_relaxed(slot(p, rank, epoch, sums + j), without_sentinel(sum));
            }
        }
        for (std::size_t j = block.grid_rank(); j < part; j += block.grid_size()) {
            for (int p = 0; p < ranks; ++p) {
                Pack sum{};
                take(waiter, slot(rank, p, epoch, sums + j), {simt::Wait::kPacket, rank, p, epoch},
                     sum);
                if (!waiter.gave_up()) {
                    store(out.of(rank), static_cast<unsigned>(p) * part + j, sum);
                }
            }
        }
        epochs->store(block, epoch);
    }
};

}  // namespace symm::ladder
