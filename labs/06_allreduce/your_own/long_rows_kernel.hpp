#pragma once
/// \file
/// AllReduce, residual and RMSNorm of a few long rows. A block runs on one multiprocessor, through
/// which all packs of its row would go to the link and come from it. Here a row is divided into
/// *parts*, one pack for each lane of a warp, and any warp of any block does a part. The warps of a
/// row tell each other the sums of their squares by packets, in memory of their own rank:
///
/// | a warp does                      | to what                 | order   | why                      |
/// |----------------------------------|-------------------------|---------|--------------------------|
/// | stores its packs of x, of all its parts | slots of all peers | relaxed | as in all_reduce_rms_norm_kernel.hpp |
/// | polls until all peers' packs are there | its own slots    | relaxed | as there                 |
/// | lane 0 stores the sum of the part's squares | the part's packet of `squares` | relaxed | a packet is data and flag in one (ll_packet.hpp) |
/// | stores the sentinel, and its packs | its own slots, `residual` | relaxed, plain | as there |
/// | lanes poll the packets of all parts of the row | `squares` | relaxed | their flag is the number of this call |
/// | stores its packs                 | `out`                   | plain   | for this rank's stream only |
///
/// - No deadlock: a warp sends all its packs before it waits for any, and all its packets before it
///   waits for any packet. All blocks run at once.
/// - If a wait of one lane gives up, its warp sends no packet, and the waits of its rank end.
/// - The next call cannot overtake this one: only the rank's next kernel stores packets again.
/// - No old flag equals a later number of a call, which wraps: each call clears one packet that it
///   does not use, in turn.
///
/// Source: ours.

#include <algorithm>
#include <symm/kernel.hpp>

#include "all_reduce_rms_norm_kernel.hpp"

namespace your_own {

/// One shot through the mailbox, for at most kMost ranks.
template <class T, int kMost>
struct RmsNormParts : MailedRows<T, kMost> {
    symm::Packet* squares;  ///< This rank's, zeroed before the first call.
    unsigned most_parts;    ///< Packets there.
    unsigned parts_of_row;

    /// How many packets it takes for `packs` packs, in rows that are longer than a part.
    static constexpr unsigned most_parts_of(unsigned packs) {
        return 2 * packs / symm::simt::kWarpSize;
    }
    static unsigned shared_bytes(unsigned) { return 0; }

    __host__ __device__ void operator()(const symm::simt::ThreadBlock& block) const {
        typename MailedRows<T, kMost>::Session mailbox(block, *this);
        symm::simt::Waiter waiter(this->timeout);
        const symm::simt::Warp warp(block);
        const std::uint32_t epoch = this->epochs->next(block);
        const Part first =
            part_at(block, block.group_index() * warps(block) + warp.meta_group_rank());
        Pack first_sum{};
        bool arrived = !mailbox.gave_up();
        for_parts(block, first, [&](const Part& part) {
            if (arrived && part.has_pack) {
                this->send(mailbox, part.at);
            }
        });
        for_parts(block, first, [&](const Part& part) {
            Pack sum{};
            arrived = arrived && (!part.has_pack || this->receive(mailbox, part.at, sum));
            const float all = sum_of_warp(warp, squares_of<T>(sum));
            if (warp.all(arrived) && warp.thread_rank() == 0) {
                symm::write_packet(&squares[part.index], cuda::std::bit_cast<std::uint32_t>(all),
                                   epoch);
            }
            if (arrived && part.has_pack) {  // while the packet is on its way
                this->store(mailbox, part.at, sum);
            }
            if (part.index == first.index) {
                first_sum = sum;
            }
        });
        for_parts(block, first, [&](const Part& part) {
            const symm::simt::Waiting waiting{symm::simt::Wait::kPacket, this->rank, this->rank,
                                              epoch};
            const Pack weight = part.has_pack ? weights()[part.i] : Pack{};
            float of_lane = 0;
            for (unsigned p = warp.thread_rank(); p < parts_of_row; p += warp.size()) {
                std::uint64_t bits = 0;
                arrived =
                    arrived && symm::read_packet(waiter, &squares[part.of_row + p], waiting, bits);
                of_lane += cuda::std::bit_cast<float>(static_cast<std::uint32_t>(bits));
            }
            const float scale = this->scale(sum_of_warp(warp, of_lane));
            if (warp.all(arrived) && part.has_pack) {
                Pack sum = first_sum;
                if (part.index != first.index) {
                    sum = reinterpret_cast<const Pack*>(this->residual)[part.at];
                }
                reinterpret_cast<Pack*>(this->out)[part.at] = scaled<T>(sum, scale, weight);
            }
        });
        clear_unused(block, epoch % most_parts);
        mailbox.end(block, this->rows * packs());
    }

private:
    struct Part {
        unsigned index;   ///< Of all rows.
        unsigned of_row;  ///< The row's first part.
        unsigned i;       ///< This lane's pack of the row,
        unsigned at;      ///< of all rows,
        bool has_pack;    ///< if it has one: a row's last part may be shorter.
    };

    __host__ __device__ const Pack* weights() const {
        return reinterpret_cast<const Pack*>(this->weight);
    }
    __host__ __device__ unsigned packs() const { return this->hidden / symm::kPerPack<T, Pack>; }
    __host__ __device__ static unsigned warps(const symm::simt::ThreadBlock& block) {
        return (block.size() + symm::simt::kWarpSize - 1) / symm::simt::kWarpSize;
    }

    /// A part of this warp. All warps have equal sizes.
    __host__ __device__ Part part_at(const symm::simt::ThreadBlock& block, unsigned index) const {
        const symm::simt::Warp warp(block);
        const unsigned row = index / parts_of_row;
        const unsigned of_row = row * parts_of_row;
        const unsigned i = (index - of_row) * warp.size() + warp.thread_rank();
        return {index, of_row, i, row * packs() + i, row < this->rows && i < packs()};
    }

    /// Calls `use` for each part of this warp, on all its lanes.
    template <class Use>
    __host__ __device__ void for_parts(const symm::simt::ThreadBlock& block, Part part,
                                       const Use& use) const {
        const unsigned step = block.dim_blocks() * warps(block);
        const unsigned end = this->rows * parts_of_row;
        if (part.index >= end) {
            return;
        }
        use(part);
        while (part.index + step < end) {
            part = part_at(block, part.index + step);
            use(part);
        }
    }

    __host__ __device__ void clear_unused(const symm::simt::ThreadBlock& block, unsigned i) const {
        if (block.grid_rank() == 0 && i >= this->rows * parts_of_row) {
            symm::write_packet(&squares[i], 0, 0);
        }
    }
};

}  // namespace your_own
