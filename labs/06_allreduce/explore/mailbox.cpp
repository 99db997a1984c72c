// The algorithms that use scratch memory, call after call, in every execution.

#include <vector>

#include "common/explore/explore_main.hpp"
#include "common/explore/timeouts.hpp"
#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"
#include "labs/06_allreduce/algorithms/sentinel/sentinel.hpp"
#include "labs/06_allreduce/algorithms/two_shot_push/two_shot_push.hpp"
#include "labs/06_allreduce/explore/calls.hpp"
#include "labs/06_allreduce/halves/packets.hpp"

namespace symm {
namespace {

/// Calls of an algorithm that uses scratch memory, with `slots` slots for each sender.
template <template <class, int> class Kernel, class T, int kMost>
void through_scratch(Scene& scene, const Ranks& who, const std::vector<std::size_t>& counts,
                     unsigned slots, std::uint32_t epoch = 0,
                     Collective collective = Collective::kAllReduce) {
    constexpr bool kPackets = std::is_same_v<typename Kernel<T, kMost>::Format, Packets>;
    constexpr unsigned kRegions = std::is_same_v<Kernel<T, kMost>, TwoShotPush<T, kMost>> ? 2 : 1;
    struct Slots {
        simt::Pack16 pack[64];
    };
    const auto scratch = explore::symmetric<Slots>(scene, who.ranks, "scratch");
    const Calls calls{counts, who.ranks, collective};
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
        const CUdeviceptr out = buffer<T>(scene, "out", rank);
        if (2 * kRegions * static_cast<unsigned>(who.ranks - 1) * slots > 64) {
            throw std::logic_error("more slots than a scene has");
        }
        const KernelCall basic = kernel_call<T>(collective, {in, out}, rank, who.ranks, timeout);
        const MailboxCall call{
            basic, {epochs, {scratch.first->pack, scratch.stride}, slots}, basic};
        scene.launch(rank, {who.blocks, who.threads}, [=](const ThreadBlock& block) {
            make_calls<T>(block, calls, rank, in, out, timeout, [&](std::size_t count) {
                Kernel<T, kMost> kernel{call};
                kernel.count = kernel.stride = count;
                kernel(block);
            });
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
    const auto reduce_scatter = [](const Ranks& who, std::vector<std::size_t> counts) {
        return [=](Scene& scene) {
            through_scratch<ReduceScatterPackets, Word, 3>(scene, who, counts, 2, 0,
                                                           Collective::kReduceScatter);
        };
    };
    const auto all_gather = [](const Ranks& who, std::vector<std::size_t> counts) {
        return [=](Scene& scene) {
            through_scratch<AllGatherPackets, Word, 3>(scene, who, counts, 2, 0,
                                                       Collective::kAllGather);
        };
    };
    return explore::explore_main(
        argc, argv,
        {
            {"one_shot/2x1", one_shot({2}, {2, 2, 2})},
            {"one_shot/2x1/2p", one_shot({2}, {4, 4, 4})},
            {"one_shot/2x1/mixed", one_shot({2}, {4, 2, 2, 2, 4})},
            {"one_shot/2x1/clear", one_shot({2}, {2, 4, 2, 2, 2, 2, 2, 4})},
            {"one_shot/2x1/wrap", one_shot({2}, {2, 2, 2, 2}, 0xfffffffd)},
            {"one_shot/2x2", one_shot({2, 2}, {4, 2, 4})},
            {"one_shot/2x1x2", one_shot({2, 1, 2}, {4, 4, 4})},
            {"one_shot/3x1", one_shot({3}, {2, 2, 2})},
            {"one_shot/3x1/mixed", one_shot({3}, {2, 4, 2, 2, 4})},
            {"sentinel/2x1", sentinel({2}, {4, 4, 4})},
            {"sentinel/2x1/2p", sentinel({2}, {8, 8, 8})},
            {"sentinel/2x2", sentinel({2, 2}, {8, 8, 8})},
            {"sentinel/3x1", sentinel({3}, {4, 4, 4})},
            {"sentinel/3x1/mixed", sentinel({3}, {4, 8, 4, 1, 8})},
            {"push/2x1", push({2}, {8, 8, 8})},
            {"push/2x1/empty", push({2}, {4, 4, 4})},
            {"push/2x1/mixed", push({2}, {4, 8, 4, 16, 4})},
            {"push/2x2", push({2, 2}, {16, 16, 16})},
            {"push/3x1", push({3}, {12, 12, 12})},
            {"push/3x1/2p", push({3}, {24, 4, 24})},
            {"push/3x1/mixed", push({3}, {12, 4, 12, 8, 12})},
            {"reduce_scatter/packets/2x1", reduce_scatter({2}, {2, 4, 2, 4})},
            {"reduce_scatter/packets/2x1/clear", reduce_scatter({2}, {2, 4, 2, 2, 2, 2, 2, 4})},
            {"reduce_scatter/packets/2x2", reduce_scatter({2, 2}, {4, 4, 4})},
            {"reduce_scatter/packets/3x1", reduce_scatter({3}, {2, 2, 2})},
            {"all_gather/packets/2x1", all_gather({2}, {2, 4, 2, 4})},
            {"all_gather/packets/2x1/clear", all_gather({2}, {2, 4, 2, 2, 2, 2, 2, 4})},
            {"all_gather/packets/2x2", all_gather({2, 2}, {4, 4, 4})},
            {"all_gather/packets/3x1", all_gather({3}, {2, 2, 2})},
        });
}
