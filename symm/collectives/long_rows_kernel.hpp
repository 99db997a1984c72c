#pragma once
/// \file
/// AllReduce, residual and RMSNorm of a few long rows. If one block did a row, as in
/// all_reduce_rms_norm_kernel.hpp, all its packs would pass through one multiprocessor. Here a row
/// is divided into *parts*, with one pack for each lane of a warp, and the warps of all blocks do
/// the parts. The sum of a row's squares then comes from several warps, which exchange the sums of
/// their parts by packets (ll_packet.hpp) in `squares`, in memory of their own rank:
///
/// | a warp does                      | to what                 | order   | why                      |
/// |----------------------------------|-------------------------|---------|--------------------------|
/// | stores the packs of x of all its parts | slots of all peers | relaxed | as in all_reduce_rms_norm_kernel.hpp |
/// | polls until all peers' packs of a part are there | its own slots | relaxed | as there         |
/// | lane 0 stores the sum of the part's squares | the part's packet in `squares` | relaxed | a packet is data and flag in one |
/// | stores the sentinel, and the new residual | its own slots, `residual` | relaxed, plain | as there |
/// | polls the packets of all parts of the row | `squares`      | relaxed | their flag is the number of this call |
/// | stores its packs                 | `out`                   | plain   | for this rank's stream only |
///
/// - No deadlock: all blocks run at once. A warp sends the packs of all its parts before it waits
///   for any pack, and stores the packets of all its parts before it waits for any packet.
/// - If a lane's wait gives up, its warp stores no more packets, and the rank's other waits end.
/// - The next call cannot overtake this one. For slots, see mailbox.hpp. Packets are stored only by
///   kernels of the same rank, which run one after another.
/// - Numbers wrap after 2^32 launches, of RmsNormPacks and of this kernel, so the flag of a packet
///   that was long unused could equal a later number. Each call of this kernel has one packet in
///   turn to clear, and does so unless it uses that packet. The number of packets is a prime: with
///   a power of two, odd packets would never have their turn if every second launch were of
///   RmsNormPacks.
///
/// Source: ours.

#include <symm/kernel.hpp>

#include "all_reduce_rms_norm_kernel.hpp"

namespace symm::collectives {

/// One shot through the mailbox, for at most kMost ranks.
template <class T, int kMost>
struct RmsNormParts : MailedRows<T, kMost> {
    symm::Packet* squares;  ///< One packet for each part, zeroed before the first call.
    unsigned most_parts;    ///< Packets in `squares`: at least `rows * parts_of_row`.
    unsigned parts_of_row;

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
        unsigned index;   ///< Among the parts of all rows.
        unsigned of_row;  ///< Index of its row's first part.
        unsigned i;       ///< This lane's pack, in the row.
        unsigned at;      ///< The same, among the packs of all rows.
        bool has_pack;    ///< False for a lane past the end of the row.
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
