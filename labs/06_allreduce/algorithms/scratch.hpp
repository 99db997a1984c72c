#pragma once
/// \file
/// Scratch memory that a rank may send to before it knows anything of the receiver.
///
/// Every launch of an algorithm has a number, its *epoch*. Each rank's scratch memory has two
/// *banks*, and the call of epoch e uses bank e % 2. A bank has a row of slots for each peer:
/// `scratch[bank][r]` of rank p is where rank r stores the data it sends to rank p. The contents of
/// a slot show by themselves that they have arrived: a packet when its flags are e (one_shot.hpp),
/// any other pack when no half is the sentinel, which unwritten memory holds (sentinel_packs.hpp).
///
/// | rank | in epoch e                               | why |
/// |------|------------------------------------------|-----|
/// | r    | stores into `scratch[e % 2][r]` of rank p | no wait: the bank is free, see below |
/// | p    | polls `scratch[e % 2][r]` and uses it    | the data shows that it has arrived |
/// | p    | packets: clears one unused slot per peer | no flag of long ago may pass for a new one after the wrap |
/// | p    | other packs: stores the sentinel in each slot that it has read | nothing there may pass for data of epoch e + 2 |
///
/// - The next call cannot overtake this one. Kernels of a communicator run one after another, and a
///   rank's kernel ends only after it has received data from every peer in the same call (push
///   needs a longer proof): each algorithm shows why. Epoch e + 1 uses the other bank. In order:
///   (1) p's kernel e reads the bank, stores the sentinel (not for packets), and ends;
///   (2) p's kernel e + 1 sends to r;
///   (3) r's kernel e + 1 loads that, and ends;
///   (4) r's kernel e + 2 stores into the bank again.
///   The end of a kernel acts as a fence after (1) and (3), so relaxed data orders (2)-(3).
/// - One bank is not enough: a rank that begins e + 1 has its peers' data of e, but the peers may
///   not have read its own data yet.
/// - Epochs are counted in device memory, so a replayed graph continues the count. They may wrap.
/// - After a rank gives up, its later kernels send nothing: if rank 0 gave up waiting for rank 1,
///   which came later and succeeded, rank 0's next input may be the output that it never wrote.
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

/// The calls that a rank has made by one algorithm: in its device memory, zeroed before the first.
/// One counter per block, all equal between kernels. Block b reads counter b only, so that no block
/// can see another's update too early.
struct Epochs {
    std::uint32_t of_block[kMaxBlocks];

    /// The number of this call. Never 0, the value in zeroed memory. After 2^32 - 1, which is odd,
    /// comes 2: the lowest bit chooses the bank, and banks must alternate.
    __host__ __device__ std::uint32_t next(const simt::ThreadBlock& block) const {
        const std::uint32_t epoch = of_block[block.group_index()] + 1;
        return epoch == 0 ? 2 : epoch;
    }

    /// Counts a call, when all threads of the block have read their counter: sets this block's, and
    /// those of blocks that this launch does not have.
    __host__ __device__ void store(const simt::ThreadBlock& block, std::uint32_t epoch) {
        block.sync();
        for (unsigned b = block.group_index() + block.thread_rank() * block.dim_blocks();
             b < kMaxBlocks; b += block.size() * block.dim_blocks()) {
            of_block[b] = epoch;
        }
    }
};

/// Parameters of the kernel of a call through scratch memory, for any type and algorithm.
struct ScratchCall : KernelCall {
    static constexpr unsigned kBanks = 2;

    Epochs* epochs;  ///< This rank's; each algorithm has its own.
    /// `[kBanks][kRegions][ranks - 1][per_sender]` slots of each rank.
    SymmetricPointer<simt::Pack16> scratch;
    unsigned per_sender;
    /// Distance from one rank's part to the next, in elements, if `in` or `out` has a part for each
    /// rank (halves/packets.hpp).
    std::size_t stride = 0;

    /// The peer `step` ranks after this one, cyclic: each rank begins with a different peer.
    __host__ __device__ int peer(int step) const {
        return rank + step < ranks ? rank + step : rank + step - ranks;
    }

    /// Slot i from `sender` in the memory of `receiver`. Banks may have several regions.
    template <unsigned kRegions = 1>
    __host__ __device__ simt::Pack16* slot(int receiver, int sender, std::uint32_t epoch,
                                           std::size_t i, unsigned region = 0) const {
        const unsigned bank = epoch % kBanks * kRegions + region;
        const auto before = static_cast<unsigned>(sender - (sender > receiver ? 1 : 0));
        return scratch.of(receiver) +
               ((bank * static_cast<unsigned>(ranks - 1) + before) * per_sender +
                static_cast<unsigned>(i));
    }
};

}  // namespace symm
