// The algorithms that use mailboxes, call after call, in every execution.

#include <vector>

#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"
#include "labs/06_allreduce/algorithms/push/push.hpp"
#include "labs/06_allreduce/algorithms/reduce_scatter_all_gather/packets.hpp"
#include "labs/06_allreduce/algorithms/sentinel/one_pack.hpp"
#include "labs/06_allreduce/algorithms/sentinel/sentinel.hpp"
#include "labs/06_allreduce/explore/calls.hpp"
#include "labs/06_allreduce/explore/overlap.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {
namespace {

/// Calls of an algorithm that uses a mailbox.
template <template <class, int> class Kernel, class T,
          Collective kCollective = Collective::kAllReduce>
void through_mailbox(Scene& scene, Calls calls) {
    constexpr int kMost = 5;
    constexpr bool kPackets = std::is_same_v<typename Kernel<T, kMost>::Format, Packets>;
    constexpr unsigned kRegions = std::is_same_v<Kernel<T, kMost>, Push<T, kMost>> ? 2 : 1;
    struct Slots {
        simt::Pack16 pack[64];
    };
    const Ranks& who = calls.who;
    const unsigned per_sender = calls.other.slots;
    const auto slots = explore::symmetric_zeroed<Slots>(scene, who.ranks, "slots");
    calls.collective = kCollective;
    for (int rank = 0; rank < who.ranks; ++rank) {
        auto* const epochs = scene.zeroed<Epochs>(1, "epochs", rank);
        std::fill(std::begin(epochs->of_block), std::end(epochs->of_block), calls.other.epoch);
        if (!kPackets) {
            for (simt::Pack16& pack : slots.of(rank)->pack) {
                pack = {{kSentinel, kSentinel}};
            }
        }
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const CUdeviceptr in = buffer<T>(scene, "in", rank);
        const CUdeviceptr out = calls.other.in_place ? in : buffer<T>(scene, "out", rank);
        if (2 * kRegions * static_cast<unsigned>(who.ranks - 1) * per_sender > 64) {
            throw std::logic_error("more slots than a scene has");
        }
        const KernelParams basic = kernel_call<T>(kCollective, {in, out}, rank, who.ranks, timeout);
        const MailboxParams call{
            basic, {epochs, {slots.first->pack, slots.stride}, per_sender}, basic};
        using Named = std::conditional_t<kPackets, Packet, float>;
        for (unsigned region = 0; region < 2 * kRegions; ++region) {
            const unsigned bank = region / kRegions;
            for (int step = 1; step < who.ranks; ++step) {
                const int p = call.peer(step);
                const int row = static_cast<int>(region) * (who.ranks - 1) + p - (p > rank);
                auto* const slot = reinterpret_cast<Named*>(
                    &slots.of(rank)->pack[static_cast<unsigned>(row) * per_sender]);
                scene.name(slot, per_sender * sizeof(simt::Pack16) / sizeof(Named),
                           fmt::format("{}(from {}, bank {})",
                                       region % kRegions == 0 ? "slot" : "result", p, bank),
                           rank);
                if constexpr (kPackets) {
                    const auto last = static_cast<std::uint32_t>(calls.counts.size());
                    const std::uint32_t flag = last % 2 == bank ? last : last - 1;
                    slot[1] = calls.other.old_packets ? Packet{1, flag, 1, flag} : Packet{};
                }
            }
        }
        if (calls.other.overlap) {
            launch_overlapping<T>(
                scene, calls, rank, timeout,
                [=](const ThreadBlock& block, std::size_t count, const Buffers& of) {
                    Call own = basic;
                    own.in = of.in;
                    own.out = of.out;
                    own.count = count;
                    Kernel<T, kMost>{{basic, call, own, count}}(block);
                });
            continue;
        }
        launch_calls<T>(scene, calls, 0, rank, in, out, timeout,
                        [=](const ThreadBlock& block, std::size_t count) {
                            if (count == calls.other.all_reduced) {
                                OneShot<T, kMost>{{basic, call, {{}, in, out, count}}}(block);
                                return;
                            }
                            Call whole = basic;
                            whole.count = count;
                            const std::size_t at_once = calls.other.at_once;
                            for (std::size_t done = 0; done < count; done += at_once) {
                                if (done != 0) {
                                    explore::kernel_end();
                                }
                                const Call piece = whole.piece(done, at_once);
                                Kernel<T, kMost>{{basic, call, piece, count}}(block);
                            }
                        });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    using Word = std::uint32_t;
    const auto one_shot = scenes_of(through_mailbox<OneShot, Word>);
    const auto sentinel = scenes_of(through_mailbox<Sentinel, float>);
    const auto one_pack = scenes_of(through_mailbox<SentinelOfOnePack, float>);
    const auto push = scenes_of(through_mailbox<Push, float>);
    const auto reduce_scatter =
        scenes_of(through_mailbox<ReduceScatterPackets, Word, Collective::kReduceScatter>);
    const auto all_gather =
        scenes_of(through_mailbox<AllGatherPackets, Word, Collective::kAllGather>);
    const auto broadcast =
        scenes_of(through_mailbox<BroadcastPackets, Word, Collective::kBroadcast>);
    const auto reduce = scenes_of(through_mailbox<ReducePackets, Word, Collective::kReduce>);
    const Other early{.overlap = true, .triggers_first = true};
    return explore::explore_main(
        argc, argv,
        {
            {"one_shot/2x1", one_shot({{2}, {2, 2, 2}})},
            {"one_shot/2x1/2p", one_shot({{2}, {4, 4, 4}})},
            {"one_shot/2x1/odd", one_shot({{2}, {3, 1}})},
            {"one_shot/2x1/mixed", one_shot({{2}, {4, 2, 2, 2, 4}})},
            {"one_shot/2x1/clear", one_shot({{2}, {2, 4, 2, 2, 2, 2, 2, 4}})},
            {"one_shot/2x1/wrap", one_shot({{2}, {2, 2, 2, 2}, {0xfffffffd}})},
            {"one_shot/2x1/in_place", one_shot({{2}, {4, 2, 4}, {.in_place = true}})},
            {"one_shot/2x1/ones", one_shot({{2}, {2, 2, 2}, {.all_ones = true}})},
            {"one_shot/2x2", one_shot({{2, 2}, {4, 2, 4}})},
            {"one_shot/2x1x2", one_shot({{2, 1, 2}, {4, 4, 4}})},
            {"one_shot/2x2x2", one_shot({{2, 2, 2}, {4, 4}}), false},
            {"one_shot/2x1x2/grids", one_shot({{2, 1, 2, true}, {4, 4, 4, 2}})},
            {"one_shot/3x1", one_shot({{3}, {2, 2, 2}})},
            {"one_shot/3x1/mixed", one_shot({{3}, {2, 4, 2, 2, 4}})},
            {"sentinel/2x1", sentinel({{2}, {4, 4, 4}})},
            {"sentinel/2x1/2p", sentinel({{2}, {8, 8, 8}})},
            {"sentinel/2x1/odd", sentinel({{2}, {5, 8, 8}})},
            {"sentinel/2x1/5p", sentinel({{2}, {16, 4, 20}, {.slots = 8}})},
            {"sentinel/2x2", sentinel({{2, 2}, {8, 8, 8}})},
            {"sentinel/2x1/wrap", sentinel({{2}, {4, 4, 4, 4}, {0xfffffffd}})},
            {"sentinel/2x1/in_place", sentinel({{2}, {8, 4, 8}, {.in_place = true}})},
            {"sentinel/2x1/ones", sentinel({{2}, {4, 4, 4}, {.all_ones = true}})},
            {"sentinel/2x1x2/grids", sentinel({{2, 1, 2, true}, {8, 8, 8, 4}})},
            {"sentinel/2x1x2/fewer", sentinel({{2, 1, 2, false, 1}, {8, 4, 8, 8}})},
            {"sentinel/3x1", sentinel({{3}, {4, 4, 4}})},
            {"sentinel/3x1/mixed", sentinel({{3}, {4, 8, 4, 1, 8}})},
            {"one_pack/2x1", one_pack({{2}, {4, 4, 4}})},
            {"one_pack/2x2", one_pack({{2, 2}, {8, 4, 8}})},
            {"one_pack/2x1/wrap", one_pack({{2}, {4, 4, 4, 4}, {0xfffffffd}})},
            {"one_pack/2x1/in_place", one_pack({{2}, {4, 4, 4}, {.in_place = true}})},
            {"one_pack/2x1/ones", one_pack({{2}, {4, 4, 4}, {.all_ones = true}})},
            {"one_pack/2x1x2", one_pack({{2, 1, 2}, {8, 8, 4}})},
            {"one_pack/3x1", one_pack({{3}, {4, 4, 4}})},
            {"push/2x1", push({{2}, {8, 8, 8}})},
            {"push/2x1/odd", push({{2}, {9, 12, 12}})},
            {"push/2x1/empty", push({{2}, {4, 4, 4}})},
            {"push/2x1/mixed", push({{2}, {4, 8, 4, 16, 4}})},
            {"push/2x2", push({{2, 2}, {16, 16, 16}})},
            {"push/2x1/wrap", push({{2}, {8, 8, 8, 8}, {0xfffffffd}})},
            {"push/2x1/in_place", push({{2}, {8, 4, 8}, {.in_place = true}})},
            {"push/2x1/ones", push({{2}, {8, 8, 8}, {.all_ones = true}})},
            {"push/2x1x2/grids", push({{2, 1, 2, true}, {16, 16, 16}})},
            {"push/2x1x2/fewer", push({{2, 1, 2, false, 1}, {16, 8, 16, 16}}), false},
            {"push/3x1", push({{3}, {12, 12, 12}})},
            {"push/3x1/2p", push({{3}, {24, 4, 24}})},
            {"push/3x1/unequal", push({{3}, {12, 4, 12}})},
            {"push/3x1/mixed", push({{3}, {12, 4, 12, 8, 12}})},
            {"push/5x1/2p", push({{5}, {40, 24, 40}}), false},
            {"reduce_scatter/packets/2x1", reduce_scatter({{2}, {1, 4, 3, 4}})},
            {"reduce_scatter/packets/2x1/pieces", reduce_scatter({{2}, {4, 3}, {.at_once = 2}})},
            {"reduce_scatter/packets/2x2", reduce_scatter({{2, 2}, {4, 4, 4}})},
            {"reduce_scatter/packets/3x1", reduce_scatter({{3}, {2, 2, 2}})},
            {"all_gather/packets/2x1", all_gather({{2}, {1, 4, 3, 4}})},
            {"all_gather/packets/2x1/pieces", all_gather({{2}, {4, 3}, {.at_once = 2}})},
            {"all_gather/packets/2x2", all_gather({{2, 2}, {4, 4, 4}})},
            {"all_gather/packets/3x1", all_gather({{3}, {2, 2, 2}})},
            {"broadcast/packets/2x1", broadcast({{2}, {1, 4, 3, 4}})},
            {"broadcast/packets/2x1/in_place", broadcast({{2}, {4, 4}, {.in_place = true}})},
            {"broadcast/packets/2x2", broadcast({{2, 2}, {4, 4, 4}})},
            {"broadcast/packets/3x1", broadcast({{3}, {4, 2, 4}})},
            {"reduce/packets/2x1", reduce({{2}, {1, 4, 3, 4}})},
            {"reduce/packets/2x2", reduce({{2, 2}, {4, 4, 4}})},
            {"reduce/packets/3x1", reduce({{3}, {4, 2, 4}})},
            {"broadcast/packets/3x2", broadcast({{3, 2}, {4, 2}}), false},
            {"reduce/packets/3x2", reduce({{3, 2}, {4, 2}}), false},
            {"clear/one_shot/2x1", one_shot({{2}, {2, 2, 2, 2, 4, 4}, {.old_packets = true}})},
            {"clear/reduce_scatter/2x1",
             reduce_scatter({{2}, {2, 2, 2, 2, 4, 4}, {.old_packets = true}})},
            {"clear/all_gather/2x1", all_gather({{2}, {2, 2, 2, 2, 4, 4}, {.old_packets = true}})},
            {"clear/broadcast/2x1",
             broadcast({{2}, {4, 4, 4, 4, 3, 3}, {.old_packets = true, .all_reduced = 3}})},
            {"clear/reduce/2x1",
             reduce({{2}, {4, 4, 4, 4, 3, 3}, {.old_packets = true, .all_reduced = 3}})},
            {"one_pack/2x1/overlap", one_pack({{2}, {4, 4}, {.overlap = true}})},
            {"one_pack/2x1/overlap/3", one_pack({{2}, {4, 4, 4}, {.overlap = true}})},
            {"one_pack/2x1/early", one_pack({{2}, {4, 4, 4}, early})},
            {"one_pack/2x2/overlap", one_pack({{2, 2}, {8, 8}, {.overlap = true}})},
            {"one_pack/2x1x2/overlap", one_pack({{2, 1, 2}, {8, 8}, {.overlap = true}})},
            {"one_pack/2x2/idle", one_pack({{2, 2}, {8, 4}, {.overlap = true}})},
            {"one_pack/2x1x2/idle", one_pack({{2, 1, 2}, {8, 4, 8}, {.overlap = true}}), false},
            {"one_pack/1x1/overlap", one_pack({{1}, {4, 4}, {.overlap = true}})},
            {"one_pack/3x1/overlap", one_pack({{3}, {4, 4, 4}, {.overlap = true}})},
            {"sentinel/2x1/overlap", sentinel({{2}, {5, 8, 4}, {.overlap = true}})},
            {"sentinel/2x1x2/overlap", sentinel({{2, 1, 2}, {8, 8}, {.overlap = true}}), false},
            {"one_shot/1x1/overlap", one_shot({{1}, {2, 2}, {.overlap = true}})},
            {"one_shot/2x1/overlap", one_shot({{2}, {2, 2}, {.overlap = true}})},
            {"one_shot/2x1/overlap/3", one_shot({{2}, {4, 2, 4}, {.overlap = true}})},
            {"one_shot/2x2/overlap", one_shot({{2, 2}, {4, 4}, {.overlap = true}})},
            {"one_shot/2x1x2/idle", one_shot({{2, 1, 2}, {4, 2, 4}, {.overlap = true}}), false},
            {"push/2x2/idle", push({{2, 2}, {8, 16, 8}, {.overlap = true}}), false},
            {"push/2x1/overlap", push({{2}, {8, 16, 8}, {.overlap = true}})},
            {"push/2x1/early", push({{2}, {8, 16, 8}, early})},
            {"push/3x1/overlap", push({{3}, {12, 12}, {.overlap = true}})},
            {"reduce_scatter/packets/2x1/overlap",
             reduce_scatter({{2}, {4, 3}, {.overlap = true}})},
            {"all_gather/packets/2x1/overlap", all_gather({{2}, {4, 3}, {.overlap = true}})},
            {"all_gather/packets/2x2/overlap", all_gather({{2, 2}, {4, 4}, {.overlap = true}}),
             false},
            {"all_gather/packets/2x1x2/idle", all_gather({{2, 1, 2}, {4, 2, 4}, {.overlap = true}}),
             false},
            {"broadcast/packets/2x1/overlap", broadcast({{2}, {4, 4}, {.overlap = true}})},
            {"reduce/packets/2x1/overlap", reduce({{2}, {4, 4}, {.overlap = true}})},
        });
}
