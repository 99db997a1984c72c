#pragma once
/// \file
/// What the scenes of any collective need: memory as OwnCollective makes it, and calls one after
/// another.

#include <functional>
#include <labs/05_device_prims/explore/symmetric.hpp>
#include <symm/kernel.hpp>
#include <tools/explore/explore_main.hpp>
#include <tools/explore/timeouts.hpp>

namespace symm::collectives {

using symm::explore::Protocol;
using symm::explore::Scene;
using symm::simt::ThreadBlock;

inline constexpr int kMost = 5;  ///< Ranks.

/// A collective's memory on all ranks, and what OwnCollective makes of it for a kernel.
struct Memory {
    int ranks;
    unsigned per_sender;  ///< Slots in each bank.
    symm::SymmetricPointer<symm::simt::Pack16> slots;
    symm::SymmetricPointer<symm::BarrierMemory> barriers;
    symm::SymmetricPointer<symm::RendezvousMemory> meetings;
    symm::SymmetricPointer<symm::TurnsMemory> turns;

    Memory(Scene& scene, int of, unsigned slots_per_sender = 4)
        : ranks(of),
          per_sender(slots_per_sender),
          slots(symm::explore::symmetric_zeroed<symm::simt::Pack16>(scene, ranks, "slots",
                                                                    slots_of_rank())),
          barriers(symm::explore::symmetric_zeroed<symm::BarrierMemory>(scene, ranks, "barrier")),
          meetings(
              symm::explore::symmetric_zeroed<symm::RendezvousMemory>(scene, ranks, "meeting")),
          turns(symm::explore::symmetric_zeroed<symm::TurnsMemory>(scene, ranks, "turns")) {}

    std::size_t slots_of_rank() const {
        return std::size_t{2} * static_cast<unsigned>(ranks - 1) * per_sender;
    }
    /// A rank's parameters; `last`: the number of the call before the first.
    symm::MailboxParams call(Scene& scene, int rank, const void* in, const void* out,
                             std::size_t count, std::uint32_t last) const {
        auto* const epochs = scene.zeroed<symm::Epochs>(1, "epochs", rank);
        std::fill(std::begin(epochs->of_block), std::end(epochs->of_block), last);
        return {{symm::Reduction(symm::ReduceOp::kSum, ranks),
                 symm::explore::timeout_of(scene, rank), rank, ranks},
                {epochs, slots, per_sender},
                {{}, reinterpret_cast<CUdeviceptr>(in), reinterpret_cast<CUdeviceptr>(out), count}};
    }
    symm::Rendezvous meeting(int rank, const void* in, const void* out) const {
        symm::Rendezvous meeting{meetings, rank, ranks, {}};
        std::fill_n(
            meeting.mine, ranks,
            symm::Buffers{reinterpret_cast<CUdeviceptr>(in), reinterpret_cast<CUdeviceptr>(out)});
        return meeting;
    }
    symm::BarrierView barrier(int rank) const { return {barriers, rank, ranks}; }
};

/// Call `c` of a rank: its input, the kernel, and the check of its results.
struct Steps {
    std::function<void(unsigned c)> fill;
    std::function<void(unsigned c, const ThreadBlock& block)> kernel;
    /// `gave_up`: whether a wait of this call has given up.
    std::function<void(unsigned c, bool gave_up)> check;
    bool fills_all = false;  ///< Also calls after one that has given up, which load their input.
};

/// Adds a rank's threads, which make the calls one after another. Calls after one that has given up
/// are not checked, as the host would throw.
inline void launch_calls(Scene& scene, int rank, const symm::explore::Shape& shape,
                         const symm::simt::Timeout& timeout, unsigned calls, const Steps& steps) {
    scene.launch(rank, shape, [=](const ThreadBlock& block) {
        for (unsigned c = 0; c < calls; ++c) {
            const bool is_checked = block.grid_rank() == 0 && !symm::explore::gave_up(timeout);
            if (is_checked || (steps.fills_all && block.grid_rank() == 0)) {
                steps.fill(c);
            }
            symm::explore::kernel_end();
            steps.kernel(c, block);
            symm::explore::kernel_end();
            if (is_checked) {
                steps.check(c, symm::explore::gave_up(timeout));
            }
        }
    });
}

/// Adds a rank's stream, where calls overlap: a kernel that fills the input of all calls, each call
/// as a dependent launch, and a kernel that checks. These two know nothing of dependent launches.
/// Each call has its own buffers.
inline void launch_overlapping(Scene& scene, int rank, const symm::explore::Shape& shape,
                               const symm::simt::Timeout& timeout, unsigned calls,
                               const Steps& steps) {
    const auto add = [&](const symm::explore::Shape& of, const auto& kernel, bool dependent) {
        scene.launch(rank, of, kernel,
                     dependent ? symm::LaunchOrder::kDependent : symm::LaunchOrder::kAfter);
    };
    const auto fill_all = [=](const ThreadBlock&) {
        for (unsigned c = 0; c < calls; ++c) {
            steps.fill(c);
        }
    };
    const auto check_all = [=](const ThreadBlock&) {
        for (unsigned c = 0; c < calls; ++c) {
            steps.check(c, symm::explore::gave_up(timeout));
        }
    };
    add({}, fill_all, false);
    for (unsigned c = 0; c < calls; ++c) {
        add(
            shape, [=](const ThreadBlock& block) { steps.kernel(c, block); }, true);
    }
    add({}, check_all, false);
}

}  // namespace symm::collectives
