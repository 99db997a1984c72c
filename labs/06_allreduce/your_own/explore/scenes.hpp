#pragma once
/// \file
/// What both kernels' scenes share: memory as OwnCollective makes it, and calls one after another.

#include <common/explore/explore_main.hpp>
#include <common/explore/timeouts.hpp>
#include <functional>
#include <labs/05_device_prims/explore/symmetric.hpp>
#include <symm/kernel.hpp>
#include <vector>

namespace your_own {

using symm::explore::Protocol;
using symm::explore::Scene;
using symm::simt::ThreadBlock;

inline constexpr int kMost = 3;        ///< Ranks.
inline constexpr unsigned kSlots = 4;  ///< For each sender, in each bank.

struct Slots {
    symm::simt::Pack16 pack[2 * (kMost - 1) * kSlots];
};

/// A collective's memory on all ranks.
struct Memory {
    symm::SymmetricPointer<Slots> slots;
    symm::SymmetricPointer<symm::BarrierMemory> barrier;
    symm::SymmetricPointer<symm::RendezvousMemory> meeting;

    Memory(Scene& scene, int ranks)
        : slots(symm::explore::symmetric<Slots>(scene, ranks, "slots")),
          barrier(symm::explore::symmetric<symm::BarrierMemory>(scene, ranks, "barrier")),
          meeting(symm::explore::symmetric<symm::RendezvousMemory>(scene, ranks, "meeting")) {}
};

/// A rank's parameters of a kernel; `last`: the number of the call before the first.
inline symm::MailboxCall mailbox_call(Scene& scene, const Memory& memory, int rank, int ranks,
                                      std::uint32_t last) {
    auto* const epochs = scene.allocate<symm::Epochs>(1, "epochs", rank);
    std::fill(std::begin(epochs->of_block), std::end(epochs->of_block), last);
    return {{symm::Reduction(symm::ReduceOp::kSum, ranks), symm::explore::timeout_of(scene, rank),
             rank, ranks},
            {epochs, {memory.slots.first->pack, memory.slots.stride}, kSlots},
            {}};
}

/// One call of a rank: its input, the kernel, and the check of its results.
struct Steps {
    std::function<void()> fill;
    std::function<void(const ThreadBlock&)> kernel;
    std::function<void(bool gave_up)> check;  ///< Whether a wait of this call has given up.
};

/// Adds a rank's threads, which make the calls one after another. Calls after one that has given up
/// are not checked, as the host would throw.
inline void launch_calls(Scene& scene, int rank, const symm::explore::Shape& shape,
                         const symm::simt::Timeout& timeout, const std::vector<Steps>& calls) {
    scene.launch(rank, shape, [=](const ThreadBlock& block) {
        const bool first = block.grid_rank() == 0;
        for (const Steps& call : calls) {
            const bool is_checked = first && !symm::explore::gave_up(timeout);
            if (is_checked) {
                call.fill();
            }
            symm::explore::kernel_end();
            call.kernel(block);
            symm::explore::kernel_end();
            if (is_checked) {
                call.check(symm::explore::gave_up(timeout));
            }
        }
    });
}

std::vector<Protocol> all_to_all_scenes();
std::vector<Protocol> rms_norm_scenes();

}  // namespace your_own
