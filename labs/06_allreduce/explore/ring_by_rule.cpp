// Lab 05's ring, and each collective on it, in the scenes of by_rule.hpp.

#include <fmt/core.h>

#include <vector>

#include "labs/05_device_prims/ring/ll.hpp"
#include "labs/05_device_prims/ring/ll128.hpp"
#include "labs/05_device_prims/ring/ring_kernel.hpp"
#include "labs/05_device_prims/ring/simple.hpp"
#include "labs/06_allreduce/explore/by_rule.hpp"

namespace symm {
namespace {

/// The connection from one rank to the next, as both see it. Each block serves a channel.
struct Link {
    Connection sender, receiver;

    Link(Scene& scene, const Calls& calls, int from, int to, std::uint64_t slot_bytes) {
        const unsigned channels = calls.who.blocks;
        auto* const send = scene.zeroed<SendMem>(channels, "head", from);
        auto* const receive = scene.zeroed<RecvMem>(channels, "tail", to);
        auto* const slots = reinterpret_cast<std::byte*>(scene.zeroed<std::uint64_t>(
            channels * kSteps * slot_bytes / sizeof(std::uint64_t), "slots", to));
        const auto end = [&](const std::string& name, int rank) {
            auto* const steps = scene.zeroed<std::uint64_t>(channels, name, rank);
            std::fill_n(steps, channels, calls.other.epoch);
            return Connection{send, receive, steps, slots, slot_bytes, 0, channels};
        };
        sender = end("sent", from);
        receiver = end("received", to);
        for (unsigned c = 0; c < channels; ++c) {
            scene.name(receive[c].fifo, kSteps, "fifo", to);
            send[c].head = receive[c].tail = calls.other.epoch;
            const ConnectionEnd end = sender.end(c);
            for (std::uint64_t step = *end.step - kSteps; step < *end.step; ++step) {
                const auto flag = static_cast<std::uint32_t>(step + 1);  // as LL leaves it
                std::fill_n(reinterpret_cast<Packet*>(end.slot(step)), slot_bytes / sizeof(Packet),
                            Packet{1, flag, 1, flag});
            }
        }
    }
};

/// Calls around a ring, with steps of `chunk` elements; 0: of as many as the host takes. `direct`:
/// sums go into the next rank's output.
template <class Protocol>
void rings(Scene& scene, const Calls& calls, std::size_t chunk, bool direct) {
    using T = typename Protocol::Element;
    using Kernel = RingKernel<Protocol>;
    const int ranks = calls.who.ranks;
    std::uint64_t slot_bytes = 128;  // the fewest in which a chunk has room
    while (Protocol::step_elements(slot_bytes) < std::max(chunk, std::size_t{1})) {
        slot_bytes += 128;
    }
    std::vector<Link> links;  // from each rank to the next
    std::vector<Buffers> buffers;
    for (int rank = 0; rank < ranks; ++rank) {
        links.emplace_back(scene, calls, rank, (rank + 1) % ranks, slot_bytes);
        buffers.push_back(buffers_of<T>(scene, calls, rank));
    }
    const auto at = [ranks](auto& of, int rank) {
        return of[static_cast<std::size_t>((rank + ranks) % ranks)];
    };
    for (int rank = 0; rank < ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = at(buffers, rank);
        const CUdeviceptr next = direct ? at(buffers, rank + 1).out : 0;
        const Call like = kernel_call<T>(calls, mine, rank, timeout);
        const RingLaunch launch{{.collective = calls.collective,
                                 .type = like.type,
                                 .op = like.op,
                                 .input = mine.in,
                                 .output = mine.out,
                                 .next_output = next},
                                rank,
                                ranks,
                                calls.who.blocks,
                                calls.who.threads,
                                at(links, rank - 1).receiver,
                                at(links, rank).sender,
                                timeout};
        launch_calls<T>(scene, calls, sizeof(typename Kernel::Shared), rank, mine.in, mine.out,
                        timeout, [=](const ThreadBlock& block, std::size_t count) {
                            RingLaunch call = launch;
                            call.request.count = count;
                            call.request.root = calls.root(count);
                            Kernel kernel = Kernel::of(call);
                            kernel.call.chunk = chunk != 0 ? chunk : kernel.call.chunk;
                            kernel(block);
                        });
    }
}

/// A protocol's scenes, with steps of one pack of `bytes` for each thread.
template <template <class, class> class ProtocolOf>
void add_ring(ByRule& rules, const std::string& protocol, std::size_t bytes, bool direct = false) {
    const auto add = [&]<class T>(T, const std::string& name, Collective collective) {
        const std::size_t pack = bytes / sizeof(T);
        const bool is_cut = collective == Collective::kAllReduce;
        rules.add("ring/" + protocol + '/' + name,
                  {.elements = pack, .is_cut = is_cut, .has_turns = true, .has_steps = true},
                  collective, [=](Scene& scene, const Calls& calls) {
                      rings<ProtocolOf<T, ThreadBlock>>(scene, calls, pack * calls.who.threads,
                                                        direct);
                  });
    };
    add(std::uint32_t{}, "all_reduce", Collective::kAllReduce);
    if (!direct) {
        add(std::uint32_t{}, "reduce_scatter", Collective::kReduceScatter);
        add(std::uint8_t{}, "all_gather", Collective::kAllGather);
        add(std::uint8_t{}, "broadcast", Collective::kBroadcast);
        add(std::uint32_t{}, "reduce", Collective::kReduce);
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    ByRule rules;
    add_ring<Simple>(rules, "simple", sizeof(simt::Pack16));
    add_ring<Simple>(rules, "direct", sizeof(simt::Pack16), true);
    add_ring<LL>(rules, "ll", sizeof(simt::Pack8));
    for (const unsigned channels : {1U, 2U}) {
        const Calls calls{{2, 1, channels}, {kMostElements - 2, 1, 33}};
        rules.scenes.push_back(
            {fmt::format("by_rule/ring/simple/all_reduce/2x1x{}/chunks_of_host", channels),
             [=](Scene& scene) {
                 rings<Simple<std::uint32_t, ThreadBlock>>(scene, calls, 0, false);
             },
             false, kSample});
    }
    return explore::explore_main(argc, argv, rules.scenes);
}
