#pragma once
/// \file
/// An AllReduce with few stores: an open task.
///
/// `./lab explore sum` runs every execution that the memory model allows.

#include "common/simt/pack.hpp"
#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm {

/// Each rank's memory for the calls: symmetric, zeroed before the first. Any use of it will do.
struct SumMemory {
    alignas(16) std::uint32_t data[8][8];
    std::uint32_t flag[8];
};

/// Replaces the elements of `data` by their sums over all ranks, in call 1, then 2 and so on.
/// `count` is a multiple of 4, at most 8; `data` is aligned to 16 bytes. There are at most 8 ranks;
/// one thread of each calls it. False if a wait gave up, here or in an earlier call.
__host__ __device__ inline bool sum(const SymmetricPointer<SumMemory>& memory, int rank, int ranks,
                                    std::uint32_t call, std::uint32_t* data, std::size_t count,
                                    simt::Waiter& waiter) {
    const auto send = [&](int p) {
        for (std::size_t i = 0; i < count; i += 4) {
            reinterpret_cast<simt::Pack16&>(memory.of(p)->data[rank][i]) =
                reinterpret_cast<simt::Pack16&>(data[i]);
        }
        signal(&memory.of(p)->flag[rank], call);
    };
    if (waiter.gave_up()) {
        return false;
    }
    if (rank != 0) {  // rank 0 adds up, and tells all others
        send(0);
    }
    for (int p = rank == 0 ? 1 : 0; p < (rank == 0 ? ranks : 1); ++p) {
        if (!wait_signal(waiter, &memory.of(rank)->flag[p], {simt::Wait::kSignal, rank, p, call})) {
            return false;
        }
        for (std::size_t i = 0; i < count; ++i) {
            data[i] = (rank == 0 ? data[i] : 0) + memory.of(rank)->data[p][i];
        }
    }
    for (int p = 1; rank == 0 && p < ranks; ++p) {
        send(p);
    }
    return true;
}

}  // namespace symm
