#pragma once
/// \file
/// The launches of a call through scratch memory: one for each piece that fits a bank.

#include "common/cuda/copy.hpp"
#include "labs/06_allreduce/algorithms/kernels.hpp"
#include "labs/06_allreduce/algorithms/scratch.hpp"

namespace symm {

/// An algorithm's memory on each rank.
struct ScratchMemory {
    Epochs epochs;
    alignas(kCacheLine) simt::Pack16 slots[1];  ///< And more.
};

/// How many slots it has.
struct ScratchLayout {
    unsigned per_sender;   ///< Slots of one sender in one bank, or one region of a bank.
    unsigned regions = 1;  ///< A bank has this many.

    std::size_t bytes(int ranks) const {
        return offsetof(ScratchMemory, slots) + std::size_t{ScratchCall::kBanks} * regions *
                                                    static_cast<unsigned>(ranks - 1) * per_sender *
                                                    sizeof(simt::Pack16);
    }
};

/// Fills the slots with the sentinel.
template <ScratchLayout (*kLayout)(int ranks)>
void initialize_with_sentinels(CUdeviceptr memory, int ranks) {
    const std::size_t epochs = offsetof(ScratchMemory, slots);
    fill(memory + epochs, 0xff, kLayout(ranks).bytes(ranks) - epochs);
}

/// Calls `launch(piece)` with a ScratchCall for each piece.
template <class Launch>
void queue_pieces(const Workspace& workspace, Algorithm algorithm, const ScratchLayout& layout,
                  const QueuedCall& call, const Launch& launch) {
    const auto memory = workspace.at<ScratchMemory>(algorithm);
    for (std::size_t done = 0; done < call.count; done += call.at_once) {
        if (done != 0) {
            workspace.throw_if_failed();
        }
        KernelCall piece = call;
        static_cast<Call&>(piece) = call.piece(done, call.at_once);
        launch(ScratchCall{piece,
                           &memory.of(call.rank)->epochs,
                           {memory.first->slots, memory.stride},
                           layout.per_sender,
                           call.count});
    }
}

}  // namespace symm
