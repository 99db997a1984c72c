// The FIFOs with few stores, in every execution.

#include <fmt/core.h>

#include "labs/04_shm_transport/connection/few_stores.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"
#include "tools/explore/unguessable.hpp"

namespace symm {
namespace {

using explore::Scene;

// Two ranks call it, with that many packs. Some packs have no bit set, and some have all.
void calls_of(Scene& scene, const std::vector<std::uint64_t>& counts) {
    constexpr std::size_t kMost = 9;
    const auto word = [](int rank, std::uint64_t step, std::uint64_t half) {
        const auto number = static_cast<std::uint32_t>(2 * step + half);
        return step % 3 == 1   ? 0
               : step % 3 == 2 ? ~std::uint64_t{0}
                               : std::uint64_t{explore::unguessable(rank, number)};
    };
    PairMemory* memory[2];
    for (int rank = 0; rank < 2; ++rank) {
        memory[rank] = scene.zeroed<PairMemory>(1, "memory", rank);
        for (int i = 0; i < 4; ++i) {
            scene.name(memory[rank]->slot[i].half, 2, fmt::format("slot[{}]", i), rank);
        }
        scene.name(memory[rank]->count, 4, "count", rank);
    }
    for (int rank = 0; rank < 2; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        auto* const out = scene.allocate<simt::Pack16>(kMost, "out", rank);
        auto* const in = scene.allocate<simt::Pack16>(kMost, "in", rank);
        for (std::uint64_t step = 0; step < kMost; ++step) {
            out[step] = {word(rank, step, 0), word(rank, step, 1)};
        }
        scene.launch(rank, {}, [=](const simt::ThreadBlock&) {
            simt::Waiter waiter(timeout);
            std::uint64_t step = 0;
            for (const std::uint64_t count : counts) {
                if (!send_and_receive(memory[rank], memory[1 - rank], rank, step, out + step,
                                      in + step, count, waiter)) {
                    const simt::Waiting& waiting = timeout.report->waiting;
                    if (!waiter.gave_up()) {
                        explore::fail(fmt::format("rank {} returns false: no wait gave up", rank));
                    }
                    if (waiting.rank != rank || waiting.peer != 1 - rank) {
                        explore::fail(fmt::format("rank {} reports that rank {} waited for rank {}",
                                                  rank, waiting.rank, waiting.peer));
                    }
                    return;
                }
                for (const std::uint64_t end = step + count; step < end; ++step) {
                    out[step] = {};
                    for (std::uint64_t half = 0; half < 2; ++half) {
                        const std::uint64_t seen = in[step].half[half];
                        if (const std::uint64_t sent = word(1 - rank, step, half); seen != sent) {
                            explore::fail(fmt::format("rank {}, pack {}: {} instead of {}", rank,
                                                      step, seen, sent));
                        }
                    }
                }
            }
        });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    const auto both = [](const std::vector<std::uint64_t>& counts) {
        return [=](symm::explore::Scene& scene) { symm::calls_of(scene, counts); };
    };
    return symm::explore::explore_main(argc, argv,
                                       {{"both/9", both({9})}, {"both/1+2+3", both({1, 2, 3})}});
}
