#pragma once
/// \file
/// Scenes for an AllReduce algorithm of your own (algorithm.hpp): calls of several sizes, one after
/// the other, in every execution. A program for the explorer includes the kernel's file first:
///
/// ```cpp
/// #include <tools/explore/explore_algorithm.hpp>
///
/// int main(int argc, char** argv) {
///     return symm::explore_algorithm<Mine>(argc, argv, {.name = "mine", .slots_per_peer = 16});
/// }
/// ```
///
/// Calls have at most 24 elements of four bytes. So few slots do, and more make a search longer.

#include <string>
#include <symm/algorithm.hpp>
#include <vector>

#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/communicator/own_memory.hpp"
#include "labs/06_allreduce/explore/calls.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {
namespace detail {

/// Room for the slots of a scene.
struct SceneMemory : OwnMemory {
    simt::Pack16 more[512];
};

template <class Kernel, class T>
void explore_calls(Scene& scene, const Calls& calls, const AlgorithmTraits& traits) {
    const Ranks& who = calls.who;
    const auto all = explore::symmetric_zeroed<SceneMemory>(scene, who.ranks, "memory");
    const SymmetricPointer<OwnMemory> memory{all.first, all.stride};
    for (int rank = 0; rank < who.ranks; ++rank) {
        OwnMemory& mine = *memory.of(rank);
        std::fill(std::begin(mine.epochs.of_block), std::end(mine.epochs.of_block),
                  calls.other.epoch);
        std::fill_n(mine.slots, 512, simt::Pack16{});
        if (traits.has_sentinel) {
            std::fill_n(mine.slots, 512, simt::Pack16{{kSentinel, kSentinel}});
        }
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const CUdeviceptr in = buffer<T>(scene, "in", rank);
        const CUdeviceptr out = calls.other.in_place ? in : buffer<T>(scene, "out", rank);
        const KernelParams basic = kernel_call<T>(calls, {in, out}, rank, timeout);
        AlgorithmParams params{{basic, mailbox_of(memory, rank, traits.slots_per_peer), basic},
                               {memory.member(&OwnMemory::rendezvous), rank, who.ranks, {}},
                               {memory.member(&OwnMemory::barrier), rank, who.ranks},
                               memory.member(&OwnMemory::turns)};
        std::fill_n(params.rendezvous.mine, who.ranks, Buffers{in, out});
        launch_calls<T>(scene, calls, simt::shared_bytes_of<Kernel>(), rank, in, out, timeout,
                        [=](const ThreadBlock& block, std::size_t count) {
                            Kernel kernel{params};
                            kernel.count = count;
                            kernel(block);
                        });
    }
}

}  // namespace detail

/// Explores the kernel's calls by one to three ranks: explore_main() with these scenes.
template <template <class, int> class Kernel>
int explore_algorithm(int argc, char** argv, const AlgorithmTraits& traits) {
    const auto of = [&](const char* variant, const Calls& calls) {
        return explore::Protocol{
            std::string(traits.name) + "/" + variant, [=](Scene& scene) {
                traits.has_sentinel
                    ? detail::explore_calls<Kernel<float, 4>, float>(scene, calls, traits)
                    : detail::explore_calls<Kernel<std::uint32_t, 4>, std::uint32_t>(scene, calls,
                                                                                     traits);
            }};
    };
    return explore::explore_main(
        argc, argv,
        {of("1x1", {{1}, {8, 3}}), of("2x1", {{2}, {8, 8, 8}}), of("2x1/one", {{2}, {1, 2, 1}}),
         of("2x1/odd", {{2}, {9, 5, 9}}), of("2x1/mixed", {{2}, {4, 16, 4, 8, 16}}),
         of("2x1/in_place", {{2}, {8, 4, 8}, {.in_place = true}}),
         of("2x1/wrap", {{2}, {8, 8, 8, 8}, {.epoch = 0xfffffffd}}), of("2x2", {{2, 2}, {8, 8}}),
         of("2x1x2", {{2, 1, 2}, {8, 8}}), of("2x1x2/grids", {{2, 1, 2, true}, {8, 8, 8}}),
         of("2x2/turn", {{2, 2}, {8, 8, 8, 8}, {.epoch = 3}}), of("3x1", {{3}, {12, 12, 12}}),
         of("3x1/avg", {{3}, {12, 7}, {.average = true}}), of("3x1/mixed", {{3}, {12, 4, 24}})});
}

}  // namespace symm
