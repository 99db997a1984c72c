#pragma once
/// \file
/// The launches of a call through a mailbox: one for each piece that fits a bank. Only .cu files
/// may include this.

#include <bit>

#include "common/cuda/copy.hpp"
#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/kernels.hpp"
#include "labs/06_allreduce/algorithms/mailbox/mailbox.hpp"

namespace symm {

/// A mailbox's memory on each rank.
struct MailboxMemory {
    Epochs epochs;
    alignas(kCacheLine) simt::Pack16 slots[1];  ///< And more.
};

/// How many slots it has.
struct MailboxLayout {
    unsigned per_sender;   ///< Slots of one sender in one bank, or one region of a bank.
    unsigned regions = 1;  ///< A bank has this many.

    std::size_t bytes_of_slots(int ranks) const {
        return std::size_t{Mailbox::kBanks} * regions * static_cast<unsigned>(ranks - 1) *
               per_sender * sizeof(simt::Pack16);
    }
};

/// A packet carries eight bytes of data.
inline MailboxLayout packet_layout(int) {
    static_assert(std::has_single_bit(kOneShotLimit));
    return {kOneShotLimit / 8};
}

/// For algorithms whose calls all take one kernel.
inline bool never(const Call&, LaunchShape) {
    return false;
}

/// The entry for a kernel that uses a mailbox. `kMake` returns it, as for launch_for(). Calls of
/// which kIsShort is true take that of `kMakeShort`.
template <Algorithm kAlgorithm, MailboxLayout (*kLayout)(int ranks), Types kTypes, auto kMake,
          bool (*kIsShort)(const Call&, LaunchShape) = never, auto kMakeShort = kMake>
struct MailboxKernels {
    using Kernel = decltype(kMake.template operator()<float, 2>(std::declval<MailboxParams>()));

    static unsigned resident(DataType type, int ranks, unsigned threads) {
        return resident_blocks_for<MailboxParams, kTypes>(type, ranks, threads, kMake);
    }
    static void queue(Workspace& workspace, const QueuedCall& call) {
        const auto memory = workspace.at<MailboxMemory>(kAlgorithm);
        const Mailbox mailbox{&memory.of(call.rank)->epochs,
                              {memory.first->slots, memory.stride},
                              kLayout(call.ranks).per_sender};
        for (std::size_t done = 0; done < call.count; done += call.at_once) {
            if (done != 0) {
                workspace.throw_if_failed();
            }
            const MailboxParams piece{call, mailbox, call.piece(done, call.at_once), call.count};
            const auto launch_by = [&](const auto& make) {
                launch_for<kTypes>(call.stream, call.shape, call.type, call.ranks, piece, make,
                                   call.order);
            };
            kIsShort(piece, call.shape) ? launch_by(kMakeShort) : launch_by(kMake);
        }
    }
    static std::size_t memory(int ranks) {
        return offsetof(MailboxMemory, slots) + kLayout(ranks).bytes_of_slots(ranks);
    }
    static void initialize(CUdeviceptr memory, int ranks) {
        if (!Kernel::Format::kHasFlags) {  // filled with the sentinel
            fill(memory + offsetof(MailboxMemory, slots), 0xff,
                 kLayout(ranks).bytes_of_slots(ranks));
        }
    }
    static constexpr AlgorithmKernels kEntry{
        .resident_blocks = resident, .queue = queue, .memory = memory, .initialize = initialize};
};

}  // namespace symm
