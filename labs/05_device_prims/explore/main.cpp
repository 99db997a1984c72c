// The signal, the packet and the barrier, in every execution.

#include <fmt/core.h>

#include "common/explore/explore_main.hpp"
#include "common/explore/timeouts.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/05_device_prims/ll_packet.hpp"

namespace symm {
namespace {

using explore::fail;
using explore::Scene;
using simt::ThreadBlock;
using simt::Wait;

// A number goes back and forth. Each side adds one to it, and signals.
void signals(Scene& scene, std::uint32_t rounds, std::uint32_t before_wrap) {
    auto* const number = scene.allocate<std::uint64_t>(1, "number");
    std::uint32_t* const flags[] = {scene.allocate<std::uint32_t>(1, "flag", 0),
                                    scene.allocate<std::uint32_t>(1, "flag", 1)};
    for (int rank = 0; rank < 2; ++rank) {
        auto* const mine = flags[rank];
        auto* const peers = flags[1 - rank];
        *mine = 0 - before_wrap;
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        scene.launch(rank, {}, [=](const ThreadBlock&) {
            simt::Waiter waiter(timeout);
            for (std::uint32_t i = 0; i < rounds; ++i) {
                const std::uint32_t round = i + 1 - before_wrap;
                if (rank == 1 && !wait_signal(waiter, mine, {Wait::kSignal, 1, 0, round})) {
                    return;
                }
                const std::uint64_t expected = 2 * i + static_cast<std::uint64_t>(rank);
                if (*number != expected) {
                    fail(fmt::format("the number is {} instead of {}", *number, expected));
                }
                *number = expected + 1;
                signal(peers, round);
                if (rank == 0 && !wait_signal(waiter, mine, {Wait::kSignal, 0, 1, round})) {
                    return;
                }
            }
        });
    }
}

// A packet goes to rank 1, and one comes back: the credit to use the slot again.
void packets(Scene& scene, std::uint32_t rounds) {
    const auto slot = explore::symmetric<Packet>(scene, 2, "slot");
    for (int rank = 0; rank < 2; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        scene.launch(rank, {}, [=](const ThreadBlock&) {
            simt::Waiter waiter(timeout);
            for (std::uint32_t round = 1; round <= rounds; ++round) {
                const std::uint64_t sent = 0x100000001 * round;
                if (rank == 0) {
                    write_packet(slot.of(1), sent, round);
                }
                std::uint64_t data = 0;
                if (!read_packet(waiter, slot.of(rank), {Wait::kPacket, rank, 1 - rank, round},
                                 data)) {
                    return;
                }
                if (data != sent) {
                    fail(fmt::format("the packet brings {:#x} instead of {:#x}", data, sent));
                }
                if (rank == 1) {
                    write_packet(slot.of(0), sent, round);
                }
            }
        });
    }
}

// In each round every thread writes a word for each peer, and reads what it was given.
void barriers(Scene& scene, int ranks, unsigned threads, unsigned blocks, unsigned rounds,
              unsigned kernels, std::uint32_t before_wrap) {
    struct Boxes {
        std::uint64_t word[2][4][4][8];  // [round][sender][block][thread]
    };
    const auto memory = explore::symmetric<BarrierMemory>(scene, ranks, "barrier");
    const auto boxes = explore::symmetric<Boxes>(scene, ranks, "box");
    for (int rank = 0; rank < ranks; ++rank) {
        for (unsigned b = 0; b < blocks; ++b) {
            memory.of(rank)->epoch[b] = 0 - before_wrap;
            for (int p = 0; p < ranks; ++p) {
                memory.of(rank)->inbox[b][p] = 0 - before_wrap;
            }
        }
    }
    for (int rank = 0; rank < ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const BarrierView view{memory, rank, ranks};
        scene.launch(rank, {.blocks = blocks, .threads = threads}, [=](const ThreadBlock& block) {
            const unsigned b = block.group_index();
            const unsigned t = block.thread_rank();
            for (unsigned k = 0; k < kernels; ++k) {
                bool complete = !explore::gave_up(timeout);
                explore::kernel_end();
                Barrier barrier(block, view, timeout);
                for (unsigned i = 0; complete && i < rounds; ++i) {
                    const auto word = [&](int sender) { return 100 * k + 10 * i + sender + 1; };
                    for (int p = 0; p < ranks; ++p) {
                        if (p != rank) {
                            boxes.of(p)->word[i % 2][rank][b][t] = word(rank);
                        }
                    }
                    complete = barrier.arrive_and_wait();
                    for (int p = 0; complete && p < ranks; ++p) {
                        const std::uint64_t seen =
                            boxes.of(rank)->word[i % 2][p][b][(t + 1) % threads];
                        if (p != rank && seen != word(p)) {
                            fail(fmt::format("after barrier {} rank {} reads {} instead of {}", i,
                                             rank, seen, word(p)));
                        }
                    }
                }
                if (complete) {
                    barrier.store_epoch();
                }
                explore::kernel_end();
            }
        });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    return explore::explore_main(
        argc, argv,
        {
            {"signal", [](Scene& scene) { signals(scene, 3, 0); }},
            {"signal/wrap", [](Scene& scene) { signals(scene, 3, 2); }},
            {"packet", [](Scene& scene) { packets(scene, 3); }},
            {"barrier/2x1", [](Scene& scene) { barriers(scene, 2, 1, 1, 2, 1, 0); }},
            {"barrier/2x2", [](Scene& scene) { barriers(scene, 2, 2, 1, 2, 1, 0); }},
            {"barrier/2x2/2", [](Scene& scene) { barriers(scene, 2, 2, 1, 2, 2, 0); }},
            {"barrier/2x2x2", [](Scene& scene) { barriers(scene, 2, 2, 2, 2, 1, 0); }},
            {"barrier/2x1/wrap", [](Scene& scene) { barriers(scene, 2, 1, 1, 3, 1, 2); }},
            {"barrier/3x1", [](Scene& scene) { barriers(scene, 3, 1, 1, 2, 1, 0); }},
            {"barrier/3x2", [](Scene& scene) { barriers(scene, 3, 2, 1, 2, 1, 0); }},
        });
}
