#pragma once
/// \file
/// Mailboxes: memory to which a rank sends before it knows anything of the receiver. In epoch e:
///
/// 1. Its threads wait for the kernel before this one, which may still run (LaunchOrder).
/// 2. A rank stores data into its slots in the mailboxes of its peers. Bank e % 2 is free.
/// 3. It lets the next kernel start, and polls its own slots until its peers' data has arrived: in
///    packets.hpp until the flags are e, in sentinel_packs.hpp until nothing is the sentinel.
/// 4. It makes slots ready for later: packs clear each slot that they have read, packets one other.
/// 5. Its threads count the launch, after a sync, for the rank's next kernel.
///
/// Source: NCCL's src/include/nccl_device/ll_a2a.h, which also has slots and epochs.

#include <cstddef>
#include <cstdint>

#include "common/simt/pack.hpp"
#include "common/simt/thread_block.hpp"
#include "common/simt/waiter.hpp"
#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/06_allreduce/algorithms/call.hpp"

namespace symm {

inline constexpr unsigned kMaxBlocks = 264;  ///< A launch has no more.

/// The launches of an algorithm that a rank has made: in its device memory, zeroed before the
/// first. One counter per block, all equal between kernels. Block b reads counter b only, so that
/// no block can see another's update too early.
struct Epochs {
    std::uint32_t of_block[kMaxBlocks];

    /// The number of this launch. Never 0, the value in zeroed memory. After 2^32 - 1, which is
    /// odd, comes 2: the lowest bit chooses the bank, and banks must alternate.
    __host__ __device__ std::uint32_t next(const simt::ThreadBlock& block) const {
        return after(of_block[block.group_index()]);
    }
    __host__ __device__ static std::uint32_t after(std::uint32_t before) {
        const std::uint32_t epoch = before + 1;
        return epoch == 0 ? 2 : epoch;
    }

    /// Counts a launch, when all threads of the block have read their counter: sets this block's,
    /// and those of blocks that this launch does not have.
    __host__ __device__ void store(const simt::ThreadBlock& block, std::uint32_t epoch) {
        block.sync();
        for (unsigned b = block.group_index() + block.thread_rank() * block.dim_blocks();
             b < kMaxBlocks; b += block.size() * block.dim_blocks()) {
            of_block[b] = epoch;
        }
    }
};

/// An algorithm's mailboxes.
struct Mailbox {
    static constexpr unsigned kBanks = 2;

    Epochs* epochs;  ///< This rank's.
    /// `[kBanks][regions][ranks - 1][per_sender]` of each rank.
    SymmetricPointer<simt::Pack16> slots;
    unsigned per_sender;
};

/// Parameters of a kernel that uses a mailbox, for any type and algorithm: see KernelParams.
struct MailboxParams : KernelContext, Mailbox, Call {
    /// Distance from one rank's part to the next, in elements, if `in` or `out` has a part for each
    /// rank (reduce_scatter_all_gather/packets.hpp).
    std::size_t stride = 0;
};

/// A thread's use of the mailbox in one launch, for at most kMost ranks. A bank may have several
/// regions, for data that is sent at different times. Format: Packets or SentinelPacks.
template <class Format, int kMost, unsigned kRegions = 1>
class MailboxSession {
public:
    using Data = typename Format::Data;  ///< What a slot carries.

    /// Waits for the kernel before this one: call it before anything is read.
    __host__ __device__ MailboxSession(const simt::ThreadBlock& block, const MailboxParams& call)
        : block_(block), call_(call), before_(epoch_before()), waiter_(call.timeout) {}

    /// Whether a wait has given up, in this call or an earlier one. Then the rank sends nothing.
    __host__ __device__ bool gave_up() const { return waiter_.gave_up(); }

    /// Sends data for slot i of the peer.
    __host__ __device__ void send(int to, std::size_t i, const Data& data,
                                  unsigned region = 0) const;

    /// The same in two steps. The first, slot_for(), computes all but the bank, where it is called:
    /// while loads are on their way. nvcc would move it behind them.
    __host__ __device__ simt::Pack16* slot_for(int to, std::size_t i) const {
        simt::Pack16* slot = call_.slots.of(to) + (place_of(call_.rank, to) * call_.per_sender + i);
        NV_IF_TARGET(NV_IS_DEVICE, (asm volatile("" : "+l"(slot));))
        return slot;
    }
    __host__ __device__ void send_to(simt::Pack16* slot, const Data& data) const {
        const unsigned bank = epoch() % Mailbox::kBanks * kRegions;
        const unsigned slots = static_cast<unsigned>(call_.ranks - 1) * call_.per_sender;
        Format::store(slot + std::size_t{bank} * slots, data, epoch());
    }

    /// Polls slot i of all ranks p whose bit is set in `from` until they have arrived in `data[p]`;
    /// leaves the other entries alone. Returns false if the wait gave up. Lets the next kernel
    /// start.
    __host__ __device__ bool receive(unsigned from, std::size_t i, Data (&data)[kMost],
                                     unsigned region = 0);

    /// The same for all peers, with the least latency: each poll loads all slots anew. For formats
    /// without flags.
    __host__ __device__ bool receive_all(std::size_t i, Data (&data)[kMost]);

    /// Makes a slot that has been received ready for epoch e + 2, in a format that needs it.
    __host__ __device__ void clear(int from, std::size_t i, unsigned region = 0) const;

    /// Ends the launch, which has used the first `used` slots of each peer: each thread calls it,
    /// also after a wait has given up. If peers differ in that, pass `per_sender`, and clear() one
    /// slot of each peer by the same rule (symm/collectives/all_to_all_kernel.hpp).
    __host__ __device__ void end(const simt::ThreadBlock& block, std::size_t used) const;

private:
    using Loaded = typename Format::Loaded;

    __host__ __device__ std::uint32_t epoch_before() const {
        block_.wait_for_predecessor();
        return call_.epochs->of_block[block_.group_index()];
    }
    /// Computed where it is used, not in the constructor: a thread that loads its input first waits
    /// for both at once.
    __host__ __device__ std::uint32_t epoch() const { return Epochs::after(before_); }
    /// Where receive() puts what it loads. Without flags that is the data already: with another
    /// array, a kernel for 8 ranks took 128 registers instead of 96.
    __host__ __device__ static auto& loaded_in(Data (&data)[kMost], Loaded (&fresh)[kMost]) {
        if constexpr (Format::kHasFlags) {
            return fresh;
        } else {
            return data;
        }
    }
    /// The slot in the memory of `receiver`.
    __host__ __device__ simt::Pack16* slot(int receiver, int sender, std::size_t i,
                                           unsigned region) const;
    /// For each peer, clears the slot whose turn it is, unless this call has just used it.
    __host__ __device__ void clear_unused(const simt::ThreadBlock& block, std::size_t used) const;

    const simt::ThreadBlock& block_;
    const MailboxParams& call_;
    std::uint32_t before_;
    simt::Waiter waiter_;
};

/// All entries become `own`, for receive() to replace the others. With zeros, or if `own` is chosen
/// later, nvcc keeps the array on the stack, and 4M took 31 us instead of 14 on two H200s.
template <class Data, int kMost>
__host__ __device__ void fill_with(Data (&data)[kMost], const Data& own) {
    SYMM_UNROLL
    for (int p = 0; p < kMost; ++p) {
        data[p] = own;
    }
}

// The implementation.

template <class Format, int kMost, unsigned kRegions>
__host__ __device__ inline void MailboxSession<Format, kMost, kRegions>::send(
    int to, std::size_t i, const Data& data, unsigned region) const {
    Format::store(slot(to, call_.rank, i, region), data, epoch());
}

template <class Format, int kMost, unsigned kRegions>
__host__ __device__ inline bool MailboxSession<Format, kMost, kRegions>::receive(
    unsigned from, std::size_t i, Data (&data)[kMost], unsigned region) {
    block_.launch_dependents();
    simt::Waiting waiting{simt::Wait::kPacket, call_.rank, call_.rank, epoch()};
    return from == 0 || waiter_.until(waiting, [&]([[maybe_unused]] std::uint64_t& seen) {
        Loaded fresh[kMost] = {};
        auto& loaded = loaded_in(data, fresh);
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {  // all loads first: their latencies overlap
            if ((from >> p & 1U) != 0) {
                loaded[p] = Format::load(slot(call_.rank, p, i, region));
            }
        }
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if ((from >> p & 1U) == 0) {
                continue;
            }
            if (Format::has_arrived(loaded[p], epoch())) {
                if constexpr (Format::kHasFlags) {  // else `loaded` is `data`
                    data[p] = Format::data_of(loaded[p]);
                }
                from &= ~(1U << p);
            } else {
                waiting.peer = p;
                if constexpr (Format::kHasFlags) {
                    seen = loaded[p].flag0;
                }
            }
        }
        return from == 0;
    });
}

template <class Format, int kMost, unsigned kRegions>
__host__ __device__ inline bool MailboxSession<Format, kMost, kRegions>::receive_all(
    std::size_t i, Data (&data)[kMost]) {
    static_assert(!Format::kHasFlags);
    block_.launch_dependents();
    simt::Waiting waiting{simt::Wait::kPacket, call_.rank, call_.rank, epoch()};
    return waiter_.until_soon(waiting, [&](std::uint64_t&) {
        const auto is_peer = [&](int p) { return p != call_.rank && p < call_.ranks; };
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if (is_peer(p)) {
                data[p] = Format::load(slot(call_.rank, p, i, 0));
            }
        }
        bool arrived = true;
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if (is_peer(p) && !Format::has_arrived(data[p], epoch())) {
                waiting.peer = p;
                arrived = false;
            }
        }
        return arrived;
    });
}

template <class Format, int kMost, unsigned kRegions>
__host__ __device__ inline void MailboxSession<Format, kMost, kRegions>::clear(
    int from, std::size_t i, unsigned region) const {
    Format::clear(slot(call_.rank, from, i, region));
}

template <class Format, int kMost, unsigned kRegions>
__host__ __device__ inline void MailboxSession<Format, kMost, kRegions>::end(
    const simt::ThreadBlock& block, std::size_t used) const {
    if constexpr (Format::kHasFlags) {
        static_assert(kRegions == 1);
        clear_unused(block, used);
    }
    call_.epochs->store(block, epoch());
}

template <class Format, int kMost, unsigned kRegions>
__host__ __device__ inline simt::Pack16* MailboxSession<Format, kMost, kRegions>::slot(
    int receiver, int sender, std::size_t i, unsigned region) const {
    const unsigned bank = epoch() % Mailbox::kBanks * kRegions + region;
    const unsigned place =
        bank * static_cast<unsigned>(call_.ranks - 1) + place_of(sender, receiver);
    return call_.slots.of(receiver) + (place * call_.per_sender + static_cast<unsigned>(i));
}

template <class Format, int kMost, unsigned kRegions>
__host__ __device__ inline void MailboxSession<Format, kMost, kRegions>::clear_unused(
    const simt::ThreadBlock& block, std::size_t used) const {
    const std::size_t i = epoch() / 2 & (call_.per_sender - 1);
    for (std::size_t step = 1 + block.grid_rank(); step < static_cast<std::size_t>(call_.ranks);
         step += block.grid_size()) {
        if (i >= used) {
            Format::clear(slot(call_.rank, call_.peer(static_cast<int>(step)), i, 0));
        }
    }
}

}  // namespace symm
