// Calls by the copy engine, one after another, in every execution.

#include <fmt/core.h>

#include "labs/06_allreduce/algorithms/copy/explore/copies.hpp"
#include "tools/explore/explore_main.hpp"

namespace symm {
namespace {

/// The end of a round where waits may give up: the copies of the next one run all the same, into
/// slots that the peer may still be reading (peer_slots.hpp). Each copies a round's number.
void ends(Scene& scene) {
    constexpr int kRanks = 2;
    const auto barrier = explore::symmetric_zeroed<BarrierMemory>(scene, kRanks, "barrier");
    const auto memory = explore::symmetric_zeroed<CopyMemory>(scene, kRanks, "copy");
    const auto trust = explore::symmetric_zeroed<TrustMemory>(scene, kRanks, "trust");
    // Of no rank, as trust: a rank that has given up still writes there.
    auto* const slots = scene.allocate<std::uint32_t>(kRanks, "slot");
    for (int rank = 0; rank < kRanks; ++rank) {
        scene.name(trust.of(rank), 1, fmt::format("trust{}", rank));
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        scene.launch(rank, {}, [=](const ThreadBlock& block) {
            const auto copy = [&](std::uint32_t round) {
                simt::store(&slots[1 - rank], round, simt::Order::kRelaxed);
                explore::kernel_end();
            };
            copy(1);
            const ReducePieceParams no_data{
                0, 0, 0, 0, 0, memory, 0, Reduction(ReduceOp::kSum, kRanks), timeout, rank, kRanks};
            ReducePiece<float, kRanks>{no_data}(block);
            const std::uint32_t read = simt::load(&slots[rank], simt::Order::kRelaxed);
            explore::kernel_end();
            EndOfRound{{barrier, rank, kRanks}, memory, {trust, rank, kRanks}, timeout}(block);
            explore::kernel_end();
            copy(2);
            if (!explore::gave_up(timeout) && read != 1) {
                fail(fmt::format("rank {} used data of round {} in round 1", rank, read));
            }
        });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    // Parts of 12 elements: with three pieces, a pack for each.
    constexpr std::size_t kPart = 12;
    const auto by_copies = [](const Ranks& who, unsigned calls, int pieces, Collective collective,
                              const Other& other = {}) {
        const bool is_cut = collective == Collective::kAllReduce;
        const std::size_t count = is_cut ? kPart * static_cast<unsigned>(who.ranks) : kPart;
        return [=](Scene& scene) {
            copies(scene, {who, std::vector(calls, count), other, collective}, {pieces},
                   kPart / 4 + 1);
        };
    };
    return explore::explore_main(
        argc, argv,
        {
            {"copy/2x1", by_copies({2}, 2, 2, Collective::kAllReduce), false},
            {"copy/2x1/pieces", by_copies({2}, 1, 3, Collective::kAllReduce), false},
            // Two slots hold it, but for what is left after the last pack.
            {"copy/2x1/longest",
             [](Scene& scene) {
                 copies(scene, {{2}, {2 * 16 - 1}}, {1}, 4);
             },
             false},
            {"copy/2x1/wrap", by_copies({2}, 2, 2, Collective::kAllReduce, {~0U}), false},
            {"copy/2x1/in_place", by_copies({2}, 1, 2, Collective::kAllReduce, {.in_place = true}),
             false},
            {"copy/2x2", by_copies({2, 2}, 2, 2, Collective::kAllReduce), false},
            {"copy/ends/2x1", ends},
            {"reduce_scatter/copy/2x1", by_copies({2}, 3, 2, Collective::kReduceScatter), false},
            {"all_gather/copy/2x1", by_copies({2}, 3, 2, Collective::kAllGather), false},
            {"reduce_scatter/copy/2x1x2", by_copies({2, 1, 2}, 2, 2, Collective::kReduceScatter),
             false},
            {"all_gather/copy/2x1x2", by_copies({2, 1, 2}, 2, 2, Collective::kAllGather), false},
            {"reduce_scatter/copy/3x1", by_copies({3}, 1, 1, Collective::kReduceScatter), false},
            {"all_gather/copy/3x1", by_copies({3}, 1, 1, Collective::kAllGather), false},
        });
}
