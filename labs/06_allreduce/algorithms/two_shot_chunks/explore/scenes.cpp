// Two shots in chunks, call after call, in every execution.

#include <vector>

#include "common/explore/explore_main.hpp"
#include "common/explore/timeouts.hpp"
#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp"
#include "labs/06_allreduce/explore/windows.hpp"

namespace symm {
namespace {

/// Whether a wait of this rank has given up. A rank that fails because it was told may be silent.
bool must_tell(const simt::Timeout& timeout) {
    return explore::gave_up(timeout) && timeout.report->waiting.what != simt::Wait::kTrust;
}

/// Chunks of `chunk` packs. No copies run, so a rank that gave up does no harm.
void chunks(Scene& scene, const Calls& calls, unsigned chunk) {
    const Ranks& who = calls.who;
    const std::uint32_t epoch = calls.other.epoch;
    constexpr std::size_t kSlot = 8;  // packs
    const auto meeting = explore::symmetric<RendezvousMemory>(scene, who.ranks, "meeting");
    const auto barrier = explore::symmetric<BarrierMemory>(scene, who.ranks, "barrier");
    name_memory(scene, who, meeting, barrier);
    const auto steps = explore::symmetric<ChunksMemory>(scene, who.ranks, "chunks");
    name_inboxes(scene, steps, who.ranks, who.blocks, "sent", &ChunksMemory::sent);
    const auto trust = explore::symmetric<TrustMemory>(scene, who.ranks, "trust");
    const auto slots = explore::symmetric<simt::Pack16>(
        scene, who.ranks, "slot", kSlot * static_cast<unsigned>(who.ranks - 1));
    std::vector<Buffers> buffers;
    for (int rank = 0; rank < who.ranks; ++rank) {
        buffers.push_back(buffers_of(scene, calls, rank));
        begin_at(epoch, *meeting.of(rank));
        begin_at(epoch, *barrier.of(rank));
        for (unsigned b = 0; b < 2; ++b) {
            steps.of(rank)->steps[b] = epoch;
            std::fill_n(steps.of(rank)->sent[b], 4, epoch);
        }
        scene.name(steps.of(rank)->steps, who.blocks, "steps", rank);
        // Of no rank: one that has given up may still write there, as nowhere else.
        scene.name(trust.of(rank), 1, fmt::format("trust{}", rank));
        scene.name(reinterpret_cast<float*>(slots.of(rank)),
                   4 * kSlot * static_cast<unsigned>(who.ranks - 1), "slot", rank);
    }
    for (int rank = 0; rank < who.ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers[static_cast<std::size_t>(rank)];
        ChunksCall call{{kernel_call<float>(calls.collective, mine, rank, who.ranks, timeout),
                         {meeting, rank, who.ranks, {}},
                         {barrier, rank, who.ranks}},
                        steps,
                        {trust, rank, who.ranks},
                        {slots, kSlot},
                        chunk};
        std::fill_n(call.rendezvous.mine, who.ranks, mine);
        using Kernel = TwoShotChunks<float, 4>;
        launch_calls<float>(
            scene, calls, Kernel::kSharedBytes, rank, mine.in, mine.out, timeout,
            [=](const ThreadBlock& block, std::size_t count) {
                Kernel kernel{call};
                kernel.count = count;
                kernel(block);
                if (who.two_grids) {
                    return;
                }
                explore::kernel_end();
                for (int p = 0; p < who.ranks && must_tell(timeout); ++p) {
                    if (simt::load(&trust.of(p)->gave_up[rank], simt::Order::kRelaxed) == 0) {
                        fail(fmt::format("rank {} gave up and has not told {}", rank, p));
                    }
                }
            });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    const auto in_chunks = [](const Calls& calls, unsigned chunk = 1) {
        return [=](Scene& scene) { chunks(scene, calls, chunk); };
    };
    return explore::explore_main(
        argc, argv,
        {
            {"chunks/2x1", in_chunks({{2}, {16, 8}})},
            {"chunks/2x1/one", in_chunks({{2}, {1, 12}})},
            {"chunks/2x1/steps", in_chunks({{2}, {63, 8}}, 5)},
            {"chunks/2x1/wrap", in_chunks({{2}, {16, 8}, {~1U}})},
            {"chunks/2x1/in_place", in_chunks({{2}, {16, 5}, {.in_place = true}})},
            {"chunks/2x1/unaligned", in_chunks({{2}, {9, 5}, {.unaligned = true}})},
            {"chunks/2x1x2/grids", in_chunks({{2, 1, 2, true}, {16, 16, 16}}), false},
            {"chunks/2x2", in_chunks({{2, 2}, {16, 16}})},
            {"chunks/2x2/one", in_chunks({{2, 2}, {1, 1}})},
            {"chunks/2x1x2", in_chunks({{2, 1, 2}, {16}})},
            {"chunks/3x1", in_chunks({{3}, {12, 12}})},
            {"chunks/3x1/mixed", in_chunks({{3}, {12, 4, 12}}), false},
        });
}
