// The barrier with few stores, in every execution.

#include <fmt/core.h>

#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/05_device_prims/few_stores.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {
namespace {

// In each round every rank writes a word for each peer, and reads the words written for it.
void meetings(explore::Scene& scene, int ranks, std::uint32_t rounds) {
    struct Boxes {
        std::uint64_t word[2][4];  // [round][sender]
    };
    const auto memory = explore::symmetric_zeroed<MeetingMemory>(scene, ranks, "meeting");
    const auto boxes = explore::symmetric_zeroed<Boxes>(scene, ranks, "box");
    for (int rank = 0; rank < ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        scene.launch(rank, {}, [=](const simt::ThreadBlock&) {
            simt::Waiter waiter(timeout);
            for (std::uint32_t round = 1; round <= rounds; ++round) {
                for (int p = 0; p < ranks; ++p) {
                    boxes.of(p)->word[round % 2][rank] = round;
                }
                if (!meet(memory, rank, ranks, round, waiter)) {
                    if (!waiter.gave_up()) {
                        explore::fail(fmt::format(
                            "meeting {} is false on rank {}, and no wait gave up", round, rank));
                    }
                    return;
                }
                for (int p = 0; p < ranks; ++p) {
                    if (const std::uint64_t seen = boxes.of(rank)->word[round % 2][p];
                        seen != round) {
                        explore::fail(fmt::format("after meeting {} rank {} reads {} of rank {}",
                                                  round, rank, seen, p));
                    }
                }
            }
        });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    return symm::explore::explore_main(
        argc, argv,
        {{"meet/2", [](symm::explore::Scene& scene) { symm::meetings(scene, 2, 3); }},
         {"meet/3", [](symm::explore::Scene& scene) { symm::meetings(scene, 3, 3); }}});
}
