#pragma once
/// \file
/// The other collectives by packets, for small calls and for memory outside of windows: one shot
/// (one_shot.hpp) with other addresses. Rank r's part of a buffer with parts begins `r * stride`
/// elements after its start. README.md has the table: who sends what to whom, and stores it where.
///
/// In a Broadcast and a Reduce, too, each rank sends its first packet to all others, if only to say
/// that it is there.

#include <cstddef>

#include "labs/06_allreduce/algorithms/mailbox/packets.hpp"

namespace symm {

template <class T, int kMost, Collective kCollective>
struct OtherShots : MailboxParams {
    using Format = Packets;
    static constexpr std::size_t kPerPacket = kPerPack<T, simt::Pack8>;
    static constexpr bool kReduces = row_of(kCollective).reduces();
    static constexpr bool kInHasParts = row_of(kCollective).in_has_parts();
    static constexpr bool kOutHasParts = row_of(kCollective).out_has_parts();
    static constexpr bool kFromRoot = row_of(kCollective).from == Holders::kRoot;
    static constexpr bool kToRoot = row_of(kCollective).to == Holders::kRoot;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        MailboxSession<Format, kMost> mailbox(block, *this);
        const std::size_t packets = (count + kPerPacket - 1) / kPerPacket;
        for (std::size_t i = block.grid_rank(); i < packets && !mailbox.gave_up();
             i += block.grid_size()) {
            const simt::Pack8 own = load_for(rank, i);
            for (int step = 1; step < ranks; ++step) {
                const int p = peer(step);
                if (is_sent(rank, p, i)) {
                    mailbox.send(p, i, kInHasParts ? load_for(p, i) : own);
                }
            }
            unsigned senders = 0;
            for (int p = 0; p < ranks; ++p) {
                senders |= p != rank && is_sent(p, rank, i) ? 1U << p : 0;
            }
            simt::Pack8 data[kMost];
            fill_with(data, own);
            if (!mailbox.receive(senders, i, data)) {
                break;
            }
            store(i, data);
        }
        if constexpr (kFromRoot || kToRoot) {
            clear_unused(block, mailbox, packets);
            mailbox.end(block, per_sender);
        } else {
            mailbox.end(block, packets);
        }
    }

private:
    /// As MailboxSession::end() does, for peers of which some use only their first slot.
    __host__ __device__ void clear_unused(const simt::ThreadBlock& block,
                                          const MailboxSession<Format, kMost>& mailbox,
                                          std::size_t packets) const {
        const std::size_t turn = epochs->next(block) / 2 & (per_sender - 1);
        for (std::size_t step = 1 + block.grid_rank(); step < static_cast<std::size_t>(ranks);
             step += block.grid_size()) {
            const int p = peer(static_cast<int>(step));
            if (turn >= (is_sent(p, rank, 1) ? packets : 1)) {
                mailbox.clear(p, turn);
            }
        }
    }

    /// Whether packet i goes from one rank to the other. The first one always does.
    __host__ __device__ bool is_sent(int from, int to, std::size_t i) const {
        return i == 0 || ((!kFromRoot || from == root) && (!kToRoot || to == root));
    }

    __host__ __device__ std::size_t part_begin_of(int p) const {
        return static_cast<std::size_t>(p) * stride;
    }

    /// Packet i for rank p. Zeros on a rank whose input does not count.
    __host__ __device__ simt::Pack8 load_for(int p, std::size_t i) const {
        if (kFromRoot && rank != root) {
            return {0};
        }
        const std::size_t at = i * kPerPacket;
        const T* const from = reinterpret_cast<const T*>(in) + (kInHasParts ? part_begin_of(p) : 0);
        return load_elements<simt::Pack8>(from + at, count - at);
    }

    __host__ __device__ void store(std::size_t i, const simt::Pack8 (&data)[kMost]) const {
        const std::size_t at = i * kPerPacket;
        T* const to = reinterpret_cast<T*>(out + at * sizeof(T));  // out: null if it is not used
        if constexpr (kReduces) {
            if (!kToRoot || rank == root) {
                store_elements(to, reduction.reduce<T>(data, ranks), count - at);
            }
        } else {
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {
                if (p < ranks && (kOutHasParts || p == root)) {
                    store_elements(to + (kOutHasParts ? part_begin_of(p) : 0), data[p], count - at);
                }
            }
        }
    }
};

/// The kernels, for at most kMost ranks.
template <class T, int kMost>
using ReduceScatterPackets = OtherShots<T, kMost, Collective::kReduceScatter>;
template <class T, int kMost>
using AllGatherPackets = OtherShots<T, kMost, Collective::kAllGather>;
template <class T, int kMost>
using BroadcastPackets = OtherShots<T, kMost, Collective::kBroadcast>;
template <class T, int kMost>
using ReducePackets = OtherShots<T, kMost, Collective::kReduce>;

}  // namespace symm
