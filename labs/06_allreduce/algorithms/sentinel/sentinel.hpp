#pragma once
/// \file
/// AllReduce in one shot without flags: every rank stores all of its input into scratch memory of
/// every other, and memory that still holds the *sentinel* has not been written yet.
///
/// A packet (one_shot.hpp) spends half of its bytes on flags. Here all bytes are data
/// (sentinel_packs.hpp), so this is for floating types only.
///
/// In epoch e, which uses bank e % 2 of the scratch memory (scratch.hpp), thread i of rank r:
///
/// | does                              | to what                            | order   | why                  |
/// |-----------------------------------|------------------------------------|---------|----------------------|
/// | stores pack i of its input        | `scratch[bank][r][i]` of all peers | relaxed | a half arrives whole, and is data and flag in one |
/// | polls until no half is the sentinel | its own `scratch[bank][p][i]`    | relaxed | as above             |
/// | stores the sentinel               | its own `scratch[bank][p][i]`      | relaxed | the slot is ready for epoch e + 2: see below |
/// | adds up, in the order of the ranks | `out[i]`                          | plain   | for this rank's stream only |
///
/// - A slot that this call does not use holds the sentinel before and after it, so calls may have
///   different sizes.
/// - No deadlock: a thread sends its packs before it waits for any, all threads of all ranks run at
///   the same time, and no thread waits for another one of its rank before its own waits have
///   ended.
/// - The next call cannot overtake this one: see scratch.hpp. A call ends with all peers' packs.
/// - All ranks add in the order 0, 1, 2 ...: their results agree to the last bit.
///
/// A thread first sends all its packs and only then waits, so the link is busy from the start. It
/// loads each pack again to add it up, even in place: no other thread writes there.
///
/// `./lab explore sentinel` runs every execution that the memory model allows.
///
/// Source: TensorRT-LLM's "Lamport" AllReduce. It uses -0.0 as sentinel, and three banks, since a
/// call clears for a later one; here a slot is cleared as soon as it has been read.

#include <cstddef>
#include <cstdint>

#include "labs/06_allreduce/algorithms/scratch.hpp"
#include "labs/06_allreduce/algorithms/sentinel/sentinel_packs.hpp"

namespace symm {

/// The kernel, for at most kMost ranks: room for their packs in registers. The scratch memory is
/// filled with the sentinel before the first use.
template <class T, int kMost>
struct Sentinel : ScratchCall {
    static constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;
    static constexpr int kUnroll = 4;  ///< Packs that a thread loads before it sends the first.

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const std::uint32_t epoch = epochs->next(block);
        const std::size_t packs = (count + kElements - 1) / kElements;
        const std::size_t all = block.grid_size();
        const std::size_t first = block.grid_rank();
        simt::Waiter waiter(timeout);
        if (first < packs && !waiter.gave_up()) {
            simt::Pack16 own = load_own(first);
            send(epoch, first, own);
            send_from(first + all, epoch, all, packs);
            for (std::size_t i = first; receive(waiter, epoch, i, own);) {
                i += all;
                if (i >= packs) {
                    break;
                }
                own = load_own(i);
            }
        }
        epochs->store(block, epoch);
    }

private:
    __host__ __device__ simt::Pack16 load_own(std::size_t i) const {
        return load_to_send(reinterpret_cast<const T*>(in), count, i);
    }

    __host__ __device__ void send(std::uint32_t epoch, std::size_t i,
                                  const simt::Pack16& own) const {
        for (int step = 1; step < ranks; ++step) {
            simt::store_relaxed(slot(peer(step), rank, epoch, i), own);
        }
    }

    /// Sends every `all`-th pack from i on.
    __host__ __device__ void send_from(std::size_t i, std::uint32_t epoch, std::size_t all,
                                       std::size_t packs) const {
        for (; i + (kUnroll - 1) * all < packs; i += kUnroll * all) {
            simt::Pack16 own[kUnroll];
            SYMM_UNROLL
            for (int k = 0; k < kUnroll; ++k) {
                own[k] = load_own(i + static_cast<std::size_t>(k) * all);
            }
            SYMM_UNROLL
            for (int k = 0; k < kUnroll; ++k) {
                send(epoch, i + static_cast<std::size_t>(k) * all, own[k]);
            }
        }
        for (; i < packs; i += all) {
            send(epoch, i, load_own(i));
        }
    }

    /// Waits for pack i of all peers, clears their slots and writes the sum. False if the wait gave
    /// up.
    __host__ __device__ bool receive(simt::Waiter& waiter, std::uint32_t epoch, std::size_t i,
                                     const simt::Pack16& own) const {
        // Filled with `own` first: with zeros, or if `own` is chosen later, nvcc keeps the
        // array on the stack, and 4M took 31 us instead of 14 on two H200s.
        simt::Pack16 pack[kMost];
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            pack[p] = own;
        }
        const unsigned peers = ((1U << ranks) - 1) & ~(1U << rank);
        const auto slot_of = [&](int p) { return slot(rank, p, epoch, i); };
        if (!wait_for_packs(waiter, rank, epoch, peers, slot_of, pack)) {
            return false;
        }
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if (p != rank && p < ranks) {
                clear(slot_of(p));
            }
        }
        const std::size_t at = i * kElements;
        store_elements(reinterpret_cast<T*>(out) + at, reduction.reduce<T>(pack, ranks),
                       count - at);
        return true;
    }
};

}  // namespace symm
