#pragma once
/// \file
/// AllReduce, residual and RMSNorm of a few long rows. A row is divided into parts, with one pack
/// for each lane of a warp. A warp:
///
/// 1. Sends the packs of x of all its parts to all peers.
/// 2. For each part: waits for the peers' packs, adds up, and stores the sum of the part's squares
///    as a packet into `squares`, in memory of its own rank.
/// 3. Waits for the packets of all parts of the row, which other warps store, and normalizes.
///
/// RMS_NORM.md has the table of accesses, and the proof.

#include <symm/kernel.hpp>

#include "all_reduce_rms_norm_kernel.hpp"

namespace symm::collectives {

/// One shot through the mailbox, for at most kMost ranks.
template <class T, int kMost, bool kPlain = true>
struct RmsNormParts : MailedRows<T, kMost, kPlain> {
    symm::Packet* squares;  ///< One packet for each part, zeroed before the first call.
    unsigned most_parts;    ///< Packets in `squares`: at least `rows * parts_of_row`.
    unsigned parts_of_row;

    static unsigned shared_bytes(unsigned) { return 0; }

    __host__ __device__ void operator()(const symm::simt::ThreadBlock& block) const {
        typename MailedRows<T, kMost, kPlain>::Session mailbox(block, *this);
        symm::simt::Waiter waiter(this->timeout);
        const symm::simt::Warp warp(block);
        const std::uint32_t epoch = this->epochs->next(block);
        const Part first =
            part_at(block, block.group_index() * warps(block) + warp.meta_group_rank());
        Pack first_sum{};
        for_parts(block, first, [&](const Part& part) {
            if (part.has_pack) {
                this->send(mailbox, part.at);
            }
        });
        bool arrived = !mailbox.gave_up();
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
            const RowOutput<T, kPlain> output(*this);
            typename RowOutput<T, kPlain>::Weights weights{};
            if (part.has_pack) {
                weights = output.weights_at(part.i);
            }
            float of_lane = 0;
            for (unsigned p = warp.thread_rank(); p < parts_of_row; p += warp.size()) {
                std::uint64_t bits = 0;
                arrived =
                    arrived && symm::read_packet(waiter, &squares[part.of_row + p], waiting, bits);
                of_lane += cuda::std::bit_cast<float>(static_cast<std::uint32_t>(bits));
            }
            const float scale = this->scale_of(sum_of_warp(warp, of_lane));
            if (warp.all(arrived) && part.has_pack) {
                Pack sum = first_sum;
                if (part.index != first.index) {
                    sum = reinterpret_cast<const Pack*>(this->residual)[part.at];
                }
                output.write(part.at, part.i, sum, scale, weights);
            }
        });
        clear_unused(block, epoch % most_parts);
        mailbox.end(block, this->rows * packs());
    }

private:
    struct Part {
        unsigned index;   ///< Among the parts of all rows.
        unsigned of_row;  ///< Index of its row's first part.
        unsigned i;       ///< This lane's pack, in the row.
        unsigned at;      ///< The same, among the packs of all rows.
        bool has_pack;    ///< False for a lane past the end of the row.
    };

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
        return {index, of_row, i, row * packs() + i, i < packs()};
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

}  // namespace symm::collectives
