#pragma once
/// \file
/// Rung 5, two shots: each element is added up once, not on every rank. Rank r loads part r of all
/// inputs, adds up, and stores the sums into all outputs. So 2(n-1)/n of the bytes cross a link,
/// not n-1 times as many, and nothing is copied. The price: two barriers, and five trips.
///
/// The real one (two_shot/two_shot.hpp) takes buffers at any place in a window, and of any
/// alignment: its first barrier carries their addresses (two_shot/rendezvous.hpp). And it loads
/// several packs before it adds the first (two_shot/reduce_packs.hpp).

#include "labs/06_allreduce/algorithms/ladder/rung.hpp"
#include "labs/06_allreduce/algorithms/two_shot/reduce_packs.hpp"

namespace symm::ladder {

struct InTwoShots : Rung {
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        Barrier all(block, barrier, timeout);
        if (!all.arrive_and_wait()) {  // all inputs are written, and no output is used any more
            return;
        }
        const std::size_t end = part_begin(packs(), rank + 1, ranks);
        for (std::size_t i = part_begin(packs(), rank, ranks) + block.grid_rank(); i < end;
             i += block.grid_size()) {
            Pack sum{};
            for (int p = 0; p < ranks; ++p) {
                add(sum, p, load(in.of(p), i));
            }
            for (int p = 0; p < ranks; ++p) {
                store(out.of(p), i, sum);
            }
        }
        if (all.arrive_and_wait()) {  // all outputs are complete, and no input is used any more
            all.store_epoch();
        }
    }
};

}  // namespace symm::ladder
