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

/// The entry for a kernel that uses a mailbox. `kMake` returns it, as for launch_for().
/// `kMakeOther`, if there is one, returns a kernel that makes some of the calls in less time (its
/// takes()).
template <Algorithm kAlgorithm, MailboxLayout (*kLayout)(int ranks), Types kTypes, auto kMake,
          auto kMakeOther = nullptr>
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
            if constexpr (kHasOther) {
                if (is_for_other(call, piece)) {
                    launch_for<kTypes>(call.stream, call.shape, call.type, call.ranks, piece,
                                       kMakeOther, call.order);
                    continue;
                }
            }
            launch_for<kTypes>(call.stream, call.shape, call.type, call.ranks, piece, kMake,
                               call.order);
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

private:
    static constexpr bool kHasOther = !std::is_null_pointer_v<decltype(kMakeOther)>;

    static bool is_for_other(const QueuedCall& call, const Call& piece) {
        bool takes = false;
        with_type_and_ranks<kTypes>(call.type, call.ranks, [&]<class T, int kMost>() {
            using Other =
                decltype(kMakeOther.template operator()<T, kMost>(std::declval<MailboxParams>()));
            takes = Other::takes(piece, call.shape.blocks * call.shape.threads);
        });
        return takes;
    }
};

}  // namespace symm
