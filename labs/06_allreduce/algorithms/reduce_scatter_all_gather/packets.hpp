#pragma once
/// \file
/// ReduceScatter and AllGather by packets, for small calls and for memory outside of windows.
///
/// Both are one shot (one_shot.hpp) with other addresses. Rank r's part of the larger buffer begins
/// `r * stride` elements after its start. Thread i of rank r:
///
/// | does                            | ReduceScatter                  | AllGather                      |
/// |---------------------------------|--------------------------------|--------------------------------|
/// | sends packet i to each peer p   | of part p of `in`              | of `in`                        |
/// | polls for all peers' packets i  | in its own slots               | the same                       |
/// | stores                          | the reduction of all ranks' packets, in their order, to `out` | each rank p's packet to part p of `out` |
///
/// - Orders, no deadlock, and why the next call cannot overtake this one: as in one shot, whose
///   mailbox they share. The three may follow each other.
/// - In place, `out` is part r of `in`, or `in` is part r of `out`: packet i of that part is loaded
///   and stored by one thread, in this order.
///
/// Explored: `./lab explore reduce_scatter/packets` and `all_gather/packets`.
/// Source: NCCL's src/device/symmetric/all_gather.cuh and reduce_scatter.cuh (LL).

#include <cstddef>

#include "labs/06_allreduce/algorithms/mailbox/packets.hpp"

namespace symm {

template <class T, int kMost, bool kReduces>
struct PartsByPackets : MailboxCall {
    using Format = Packets;
    static constexpr std::size_t kPerPacket = kPerPack<T, simt::Pack8>;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        MailboxSession<Format, kMost> mailbox(block, *this);
        const std::size_t packets = (count + kPerPacket - 1) / kPerPacket;
        for (std::size_t i = block.grid_rank(); i < packets && !mailbox.gave_up();
             i += block.grid_size()) {
            const simt::Pack8 own = load_for(rank, i);
            for (int step = 1; step < ranks; ++step) {
                const int p = peer(step);
                mailbox.send(p, i, kReduces ? load_for(p, i) : own);
            }
            simt::Pack8 data[kMost];
            fill_with(data, own);
            if (!mailbox.receive(peers(), i, data)) {
                break;
            }
            store_all(i, data);
        }
        mailbox.end(block, packets);
    }

private:
    __host__ __device__ std::size_t part_begin_of(int p) const {
        return static_cast<std::size_t>(p) * stride;
    }

    /// Packet i for rank p.
    __host__ __device__ simt::Pack8 load_for(int p, std::size_t i) const {
        const std::size_t at = i * kPerPacket;
        const T* const from = reinterpret_cast<const T*>(in) + (kReduces ? part_begin_of(p) : 0);
        return load_elements<simt::Pack8>(from + at, count - at);
    }

    __host__ __device__ void store_all(std::size_t i, const simt::Pack8 (&data)[kMost]) const {
        const std::size_t at = i * kPerPacket;
        T* const to = reinterpret_cast<T*>(out) + at;
        if constexpr (kReduces) {
            store_elements(to, reduction.reduce<T>(data, ranks), count - at);
        } else {
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {
                if (p < ranks) {
                    store_elements(to + part_begin_of(p), data[p], count - at);
                }
            }
        }
    }
};

/// The kernels, for at most kMost ranks.
template <class T, int kMost>
using ReduceScatterPackets = PartsByPackets<T, kMost, true>;
template <class T, int kMost>
using AllGatherPackets = PartsByPackets<T, kMost, false>;

}  // namespace symm
