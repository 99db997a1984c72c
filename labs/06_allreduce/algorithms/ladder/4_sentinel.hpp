#pragma once
/// \file
/// Rung 4, the sentinel: data needs no flag where it differs from what was there before. Empty
/// slots hold 64 one bits, a NaN that is never sent. So half as many bytes cross the link. The
/// price: the receiver empties each slot, and only floating types have such a value.
///
/// The real one (sentinel/sentinel.hpp) polls all peers at once, loads four packs before it sends
/// the first, and takes all floating types.

#include "labs/06_allreduce/algorithms/ladder/rung.hpp"
#include "labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp"

namespace symm::ladder {

/// Waits for a pack, and empties its slot. After a wait that gave up, does nothing.
__host__ __device__ inline void take(simt::Waiter& waiter, Pack* slot, const simt::Waiting& waiting,
                                     Pack& pack) {
    if (waiter.until(waiting, [&](std::uint64_t&) {
            pack = simt::load_relaxed(slot);
            return has_arrived(pack);
        })) {
        clear(slot);
    }
}

struct BySentinel : Rung {
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const std::uint32_t epoch = epochs->next(block);
        simt::Waiter waiter(timeout);
        send_all(block, waiter, epoch);
        for (std::size_t i = block.grid_rank(); i < packs(); i += block.grid_size()) {
            const Pack sum = sum_at(waiter, epoch, i);
            if (!waiter.gave_up()) {
                store(out.of(rank), i, sum);
            }
        }
        epochs->store(block, epoch);
    }

    __host__ __device__ void send_all(const simt::ThreadBlock& block, const simt::Waiter& waiter,
                                      std::uint32_t epoch) const {
        for (std::size_t i = block.grid_rank(); i < packs() && !waiter.gave_up();
             i += block.grid_size()) {
            const Pack own = without_sentinel(load(in.of(rank), i));
            for (int p = 0; p < ranks; ++p) {
                simt::store_relaxed(slot(p, rank, epoch, i), own);
            }
        }
    }
    __host__ __device__ Pack sum_at(simt::Waiter& waiter, std::uint32_t epoch,
                                    std::size_t i) const {
        Pack sum{};
        for (int p = 0; p < ranks; ++p) {
            Pack next{};
            take(waiter, slot(rank, p, epoch, i), {simt::Wait::kPacket, rank, p, epoch}, next);
            add(sum, p, next);
        }
        return sum;
    }
};

}  // namespace symm::ladder
