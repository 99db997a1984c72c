// The algorithms, call after call, in every execution.

#include <fmt/core.h>

#include <vector>

#include "common/explore/await.hpp"
#include "common/explore/explore_main.hpp"
#include "common/explore/timeouts.hpp"
#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"
#include "labs/06_allreduce/algorithms/sentinel/sentinel.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"
#include "labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp"
#include "labs/06_allreduce/algorithms/two_shot_push/two_shot_push.hpp"

namespace symm {
namespace {

using explore::fail;
using explore::Scene;
using simt::ThreadBlock;

constexpr std::size_t kMostElements = 64;

/// Unique to rank, call and index.
template <class T>
T input(int rank, unsigned call, std::size_t i) {
    return static_cast<T>(1 + static_cast<unsigned>(rank) + 10 * call + 100 * i);
}

template <class T>
T* elements(CUdeviceptr address) {
    return reinterpret_cast<T*>(address);
}

/// A buffer of each rank.
template <class T>
CUdeviceptr buffer(Scene& scene, const std::string& name, int rank) {
    return reinterpret_cast<CUdeviceptr>(scene.allocate<T>(kMostElements, name, rank));
}

/// Makes calls with `counts[c]` elements, one after another: fills the input, runs `kernel`, checks
/// the output. A rank that has given up checks nothing, as its host would throw.
template <class T, class Kernel>
void make_calls(const ThreadBlock& block, const std::vector<std::size_t>& counts, int rank,
                int ranks, CUdeviceptr in, CUdeviceptr out, const simt::Timeout& timeout,
                const Kernel& kernel) {
    const bool first = block.grid_rank() == 0;
    for (unsigned c = 0; c < counts.size(); ++c) {
        if (first && !explore::gave_up(timeout)) {
            for (std::size_t i = 0; i < counts[c]; ++i) {
                elements<T>(in)[i] = input<T>(rank, c, i);
            }
        }
        explore::kernel_end();
        kernel(counts[c]);
        explore::kernel_end();
        if (!first || explore::gave_up(timeout)) {
            continue;
        }
        for (std::size_t i = 0; i < counts[c]; ++i) {
            T sum = input<T>(0, c, i);
            for (int p = 1; p < ranks; ++p) {
                sum = static_cast<T>(sum + input<T>(p, c, i));
            }
            if (elements<T>(out)[i] != sum) {
                fail(fmt::format("rank {}, call {}, element {}: {} instead of {}", rank, c, i,
                                 elements<T>(out)[i], sum));
            }
        }
    }
}

struct Ranks {
    int ranks;
    unsigned threads = 1;
    unsigned blocks = 1;
};

/// Calls of an algorithm that goes through scratch memory: `slots` slots for each sender.
template <template <class, int> class Kernel, class T, int kMost>
void through_scratch(Scene& scene, const Ranks& who, const std::vector<std::size_t>& counts,
                     unsigned slots, std::uint32_t epoch = 0, bool in_place = false) {
    constexpr bool kPackets = std::is_same_v<Kernel<T, kMost>, OneShot<T, kMost>>;
    constexpr unsigned kRegions = std::is_same_v<Kernel<T, kMost>, TwoShotPush<T, kMost>> ? 2 : 1;
    struct Slots {
        simt::Pack16 pack[64];
    };
    const auto scratch = explore::symmetric<Slots>(scene, who.ranks, "scratch");
    for (int rank = 0; rank < who.ranks; ++rank) {
        auto* const epochs = scene.allocate<Epochs>(1, "epochs", rank);
        std::fill(std::begin(epochs->of_block), std::end(epochs->of_block), epoch);
        if (!kPackets) {
            for (simt::Pack16& pack : scratch.of(rank)->pack) {
                pack = {{kSentinel, kSentinel}};
            }
        }
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const CUdeviceptr in = buffer<T>(scene, "in", rank);
        const CUdeviceptr out = in_place ? in : buffer<T>(scene, "out", rank);
        if (2 * kRegions * static_cast<unsigned>(who.ranks - 1) * slots > 64) {
            throw std::logic_error("more slots than a scene has");
        }
        const ScratchCall call{in,     out,
                               0,      Reduction(ReduceOp::kSum, who.ranks),
                               epochs, {scratch.first->pack, scratch.stride},
                               slots,  timeout,
                               rank,   who.ranks};
        scene.launch(rank, {who.blocks, who.threads}, [=](const ThreadBlock& block) {
            make_calls<T>(block, counts, rank, who.ranks, in, out, timeout, [&](std::size_t count) {
                Kernel<T, kMost> kernel{call};
                kernel.count = count;
                kernel(block);
            });
        });
    }
}

void two_shots(Scene& scene, const Ranks& who, const std::vector<std::size_t>& counts) {
    const auto meeting = explore::symmetric<RendezvousMemory>(scene, who.ranks, "meeting");
    const auto barrier = explore::symmetric<BarrierMemory>(scene, who.ranks, "barrier");
    std::vector<Buffers> buffers;
    for (int rank = 0; rank < who.ranks; ++rank) {
        buffers.push_back({buffer<float>(scene, "in", rank), buffer<float>(scene, "out", rank)});
    }
    for (int rank = 0; rank < who.ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers[static_cast<std::size_t>(rank)];
        Rendezvous rendezvous{meeting, rank, who.ranks, {}};
        std::fill_n(rendezvous.mine, who.ranks, mine);
        const TwoShotCall call{rendezvous,
                               {barrier, rank, who.ranks},
                               0,
                               Reduction(ReduceOp::kSum, who.ranks),
                               timeout};
        using Kernel = TwoShot<float, 4>;
        scene.launch(rank, {who.blocks, who.threads, Kernel::kSharedBytes},
                     [=](const ThreadBlock& block) {
                         make_calls<float>(block, counts, rank, who.ranks, mine.in, mine.out,
                                           timeout, [&](std::size_t count) {
                                               Kernel kernel{call};
                                               kernel.count = count;
                                               kernel(block);
                                           });
                     });
    }
}

/// What a stream does behind an event of another stream.
void wait_for_event(const std::uint32_t* event, std::uint32_t number) {
    const auto is_set = [&] { return simt::load(event, simt::Order::kAcquire) >= number; };
    explore::await(is_set, nullptr);
}

/// Calls of two ranks by the copy engine, as TwoShotCopy queues them. Ranks 2 and 3 stand for the
/// streams of the copies of ranks 0 and 1. A copy brings 16 bytes, one piece; that of a flag begins
/// when the one before has arrived, so it is a release.
void copies(Scene& scene, unsigned threads, unsigned calls) {
    constexpr int kRanks = 2;
    constexpr std::uint32_t kPieces = CopyMemory::kPieces;
    constexpr std::size_t kPiece = 4;  // elements
    constexpr std::size_t kCount = kRanks * kPieces * kPiece;
    const auto begin = [](int part, std::size_t k) {
        return (static_cast<std::size_t>(part) * kPieces + k) * kPiece;
    };
    struct Slot {
        alignas(16) float element[kPieces * kPiece];
    };
    const auto meeting = explore::symmetric<RendezvousMemory>(scene, kRanks, "meeting");
    const auto barrier = explore::symmetric<BarrierMemory>(scene, kRanks, "barrier");
    const auto memory = explore::symmetric<CopyMemory>(scene, kRanks, "copy");
    const auto slots = explore::symmetric<Slot>(scene, kRanks, "slot");
    std::vector<Buffers> buffers;
    for (int rank = 0; rank < kRanks; ++rank) {
        buffers.push_back({buffer<float>(scene, "in", rank), buffer<float>(scene, "out", rank)});
    }
    for (int rank = 0; rank < kRanks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers[static_cast<std::size_t>(rank)];
        auto* const met = scene.allocate<std::uint32_t>(1, "met", rank);
        auto* const pushed = scene.allocate<std::uint32_t>(1, "pushed", rank);
        const CopyView view{memory, rank, kRanks};
        Rendezvous rendezvous{meeting, rank, kRanks, {}};
        std::fill_n(rendezvous.mine, kRanks, mine);
        const std::vector<std::size_t> counts(calls, kCount);
        scene.launch(rank, {.threads = threads}, [=](const ThreadBlock& block) {
            const bool first = block.thread_rank() == 0;
            std::uint32_t call = 0;
            make_calls<float>(
                block, counts, rank, kRanks, mine.in, mine.out, timeout, [&](std::size_t) {
                    ++call;
                    Meet{rendezvous, view, timeout}(block);
                    explore::kernel_end();
                    if (first) {
                        simt::store(met, call, simt::Order::kRelease);
                    }
                    for (std::uint32_t k = 0; k < kPieces; ++k) {
                        if (first) {
                            wait_for_event(pushed, kPieces * (call - 1) + k + 1);
                        }
                        explore::kernel_end();
                        ReducePiece<float, kRanks>{
                            {mine.in + begin(rank, k) * sizeof(float),
                             begin(rank, k) * sizeof(float), kPiece,
                             reinterpret_cast<CUdeviceptr>(slots.of(rank)->element + k * kPiece),
                             sizeof(Slot), view.local(), k, Reduction(ReduceOp::kSum, kRanks),
                             timeout, rank, kRanks}}(block);
                        explore::kernel_end();
                    }
                    EndOfRound{{barrier, rank, kRanks}, view, timeout}(block);
                });
        });
        scene.launch(kRanks + rank, {}, [=](const ThreadBlock&) {
            const int peer = 1 - rank;
            for (std::uint32_t call = 1; call <= calls; ++call) {
                wait_for_event(met, call);
                for (std::uint32_t k = 0; k < kPieces; ++k) {
                    for (std::size_t i = 0; i < kPiece; ++i) {
                        slots.of(peer)->element[k * kPiece + i] =
                            elements<float>(mine.in)[begin(peer, k) + i];
                    }
                    simt::store(&view.peer(peer)->flag[k][rank], view.local()->round,
                                simt::Order::kRelease);
                    simt::store(pushed, kPieces * (call - 1) + k + 1, simt::Order::kRelease);
                }
            }
        });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    using Word = std::uint32_t;
    const auto one_shot = [](const Ranks& who, std::vector<std::size_t> counts,
                             std::uint32_t epoch = 0) {
        return
            [=](Scene& scene) { through_scratch<OneShot, Word, 3>(scene, who, counts, 2, epoch); };
    };
    const auto sentinel = [](const Ranks& who, std::vector<std::size_t> counts) {
        return [=](Scene& scene) { through_scratch<Sentinel, float, 3>(scene, who, counts, 2); };
    };
    const auto push = [](const Ranks& who, std::vector<std::size_t> counts) {
        return [=](Scene& scene) { through_scratch<TwoShotPush, float, 3>(scene, who, counts, 2); };
    };
    const auto two_shot = [](const Ranks& who, std::vector<std::size_t> counts) {
        return [=](Scene& scene) { two_shots(scene, who, counts); };
    };
    return explore::explore_main(
        argc, argv,
        {
            {"one_shot/2x1", one_shot({2}, {2, 2, 2})},
            {"one_shot/2x1/2p", one_shot({2}, {4, 4, 4})},
            {"one_shot/2x1/mixed", one_shot({2}, {4, 2, 2, 2, 4})},
            {"one_shot/2x1/clear", one_shot({2}, {2, 4, 2, 2, 2, 2, 2, 4})},
            {"one_shot/2x1/wrap", one_shot({2}, {2, 2, 2, 2}, 0xfffffffd)},
            {"one_shot/2x2", one_shot({2, 2}, {4, 4, 4})},
            {"one_shot/2x1x2", one_shot({2, 1, 2}, {4, 4, 4})},
            {"one_shot/3x1", one_shot({3}, {2, 2, 2})},
            {"sentinel/2x1", sentinel({2}, {4, 4, 4})},
            {"sentinel/2x1/2p", sentinel({2}, {8, 8, 8})},
            {"sentinel/2x2", sentinel({2, 2}, {8, 8, 8})},
            {"sentinel/3x1", sentinel({3}, {4, 4, 4})},
            {"push/2x1", push({2}, {8, 8, 8})},
            {"push/2x1/empty", push({2}, {4, 4, 4})},
            {"push/2x2", push({2, 2}, {16, 16, 16})},
            {"push/3x1", push({3}, {12, 12, 12})},
            {"two_shot/2x1", two_shot({2}, {8, 8})},
            {"two_shot/2x2", two_shot({2, 2}, {16, 16})},
            {"two_shot/2x1x2", two_shot({2, 1, 2}, {16, 16})},
            {"two_shot/2x1x2/idle", two_shot({2, 1, 2}, {4, 4, 4})},
            {"copy/2x1", [](Scene& scene) { copies(scene, 1, 3); }, false},
            {"copy/2x2", [](Scene& scene) { copies(scene, 2, 2); }, false},
            {"two_shot/3x1", two_shot({3}, {12, 12})},
        });
}
