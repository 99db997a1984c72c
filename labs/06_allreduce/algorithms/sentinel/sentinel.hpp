#pragma once
/// \file
/// AllReduce in one shot without flags, for floating types: every rank stores all of its input into
/// the mailbox of every other, and memory that still holds the *sentinel* has not been written yet
/// (sentinel_packs.hpp). Thread i of rank r:
///
/// | does                                | to what             | order   | why                        |
/// |-------------------------------------|---------------------|---------|----------------------------|
/// | stores pack i of its input          | slot i of all peers | relaxed | a half arrives whole, and is data and flag in one |
/// | polls until no half is the sentinel | its own slots i     | relaxed | as above                   |
/// | stores the sentinel                 | its own slots i     | relaxed | they are ready for epoch e + 2 (mailbox.hpp) |
/// | adds up, in the order of the ranks  | `out[i]`            | plain   | for this rank's stream only |

#include <cstddef>

#include "labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp"

namespace symm {

/// The kernel, for at most kMost ranks: room for their packs in registers.
template <class T, int kMost>
struct Sentinel : MailboxParams {
    using Format = SentinelPacks;
    static constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;
    static constexpr int kUnroll = 4;  ///< Packs that a thread loads before it sends the first.

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        Session mailbox(block, *this);
        const std::size_t packs = (count + kElements - 1) / kElements;
        const std::size_t all = block.grid_size();
        const std::size_t first = block.grid_rank();
        // Loads before it asks: all loads are on their way at once.
        simt::Pack16 own = first < packs ? load_own(first) : simt::Pack16{};
        if (first < packs && !mailbox.gave_up()) {
            send(mailbox, first, own);
            send_from(mailbox, first + all, all, packs);
            for (std::size_t i = first; receive(mailbox, i, own);) {
                i += all;
                if (i >= packs) {
                    break;
                }
                own = load_own(i);
            }
        }
        mailbox.end(block, packs);
    }

private:
    using Session = MailboxSession<Format, kMost>;

    __host__ __device__ simt::Pack16 load_own(std::size_t i) const {
        return load_to_send(reinterpret_cast<const T*>(in), count, i);
    }

    __host__ __device__ void send(const Session& mailbox, std::size_t i,
                                  const simt::Pack16& own) const {
        for (int step = 1; step < ranks; ++step) {
            mailbox.send(peer(step), i, own);
        }
    }

    /// Sends every `all`-th pack from i on.
    __host__ __device__ void send_from(const Session& mailbox, std::size_t i, std::size_t all,
                                       std::size_t packs) const {
        for (; i + (kUnroll - 1) * all < packs; i += kUnroll * all) {
            simt::Pack16 own[kUnroll];
            SYMM_UNROLL
            for (int k = 0; k < kUnroll; ++k) {
                own[k] = load_own(i + static_cast<std::size_t>(k) * all);
            }
            SYMM_UNROLL
            for (int k = 0; k < kUnroll; ++k) {
                send(mailbox, i + static_cast<std::size_t>(k) * all, own[k]);
            }
        }
        for (; i < packs; i += all) {
            send(mailbox, i, load_own(i));
        }
    }

    /// Waits for pack i of all peers, clears their slots and writes the sum. False if the wait gave
    /// up.
    __host__ __device__ bool receive(Session& mailbox, std::size_t i,
                                     const simt::Pack16& own) const {
        simt::Pack16 pack[kMost];
        fill_with(pack, own);
        if (!mailbox.receive(peers(), i, pack)) {
            return false;
        }
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if (p != rank && p < ranks) {
                mailbox.clear(p, i);
            }
        }
        const std::size_t at = i * kElements;
        store_elements(reinterpret_cast<T*>(out) + at, reduction.reduce<T>(pack, ranks),
                       count - at);
        return true;
    }
};

}  // namespace symm
