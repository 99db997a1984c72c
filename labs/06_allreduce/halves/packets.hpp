#pragma once
/// \file
/// ReduceScatter and AllGather by packets, for small calls and for memory outside of windows.
///
/// Both are one shot (one_shot.hpp) with other addresses. Rank r's part of the larger buffer begins
/// `r * stride` elements after its start. In epoch e, thread i of rank r:
///
/// | does                               | ReduceScatter                       | AllGather              |
/// |------------------------------------|-------------------------------------|------------------------|
/// | sends packet i with flag e to `scratch[bank][r][i]` of each peer p | of part p of `in` | of `in` |
/// | polls until all peers' flags are e | its own `scratch[bank][p][i]`       | the same               |
/// | stores                             | the reduction of all ranks' packets, in their order, to `out` | each rank p's packet to part p of `out` |
/// | clears one unused packet per peer  | as one shot                         | as one shot            |
///
/// - Orders, no deadlock, and why the next call cannot overtake this one: as in one shot, since
///   each rank sends a packet to each peer, and ends only when it has the packets of all peers. So
///   the three share epochs and scratch memory, and may follow each other.
/// - In place, `out` is part r of `in`, or `in` is part r of `out`: packet i of that part is loaded
///   and stored by one thread, in this order.
///
/// Explored: `./lab explore reduce_scatter/packets` and `all_gather/packets`.
/// Source: NCCL's src/device/symmetric/all_gather.cuh and reduce_scatter.cuh (LL).

#include <cstddef>
#include <cstdint>

#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"

namespace symm {

template <class T, int kMost, bool kReduces>
struct HalfByPackets : OneShot<T, kMost> {
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        constexpr std::size_t kPerPacket = kPerPack<T, simt::Pack8>;
        const std::uint32_t epoch = this->epochs->next(block);
        const std::size_t packets = (this->count + kPerPacket - 1) / kPerPacket;
        simt::Waiter waiter(this->timeout);
        for (std::size_t i = block.grid_rank(); i < packets && !waiter.gave_up();
             i += block.grid_size()) {
            const simt::Pack8 own = load_for(this->rank, i);
            for (int step = 1; step < this->ranks; ++step) {
                const int p = this->peer(step);
                write_packet(this->slot(p, this->rank, epoch, i),
                             kReduces ? load_for(p, i).bits : own.bits, epoch);
            }
            simt::Pack8 data[kMost];
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {
                data[p] = own;
            }
            if (!this->receive(waiter, epoch, i, data)) {
                break;
            }
            store_all(i, data);
        }
        this->clear_unused(block, epoch, packets);
        this->epochs->store(block, epoch);
    }

private:
    __host__ __device__ std::size_t part_begin_of(int p) const {
        return static_cast<std::size_t>(p) * this->stride;
    }

    /// Packet i for rank p.
    __host__ __device__ simt::Pack8 load_for(int p, std::size_t i) const {
        const std::size_t at = i * kPerPack<T, simt::Pack8>;
        const T* const from =
            reinterpret_cast<const T*>(this->in) + (kReduces ? part_begin_of(p) : 0);
        return load_elements<simt::Pack8>(from + at, this->count - at);
    }

    __host__ __device__ void store_all(std::size_t i, const simt::Pack8 (&data)[kMost]) const {
        const std::size_t at = i * kPerPack<T, simt::Pack8>;
        T* const to = reinterpret_cast<T*>(this->out) + at;
        if constexpr (kReduces) {
            store_elements(to, this->reduction.template reduce<T>(data, this->ranks),
                           this->count - at);
        } else {
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {
                if (p < this->ranks) {
                    store_elements(to + part_begin_of(p), data[p], this->count - at);
                }
            }
        }
    }
};

/// The kernels, for at most kMost ranks.
template <class T, int kMost>
using ReduceScatterPackets = HalfByPackets<T, kMost, true>;
template <class T, int kMost>
using AllGatherPackets = HalfByPackets<T, kMost, false>;

}  // namespace symm
