// AllReduce by the switch, by rule and where a rank that gave up goes on.

#include <vector>

#include "labs/05_device_prims/explore/arrivals.hpp"
#include "labs/06_allreduce/algorithms/multicast/multicast.hpp"
#include "labs/06_allreduce/explore/by_rule.hpp"

namespace symm {
namespace {

template <class T>
void by_switch(Scene& scene, const Calls& calls, bool two_shots) {
    constexpr std::size_t kPacks = kMostElements * sizeof(T) / sizeof(simt::Pack16);
    const auto arrivals =
        explore::arrivals(scene, calls.who.ranks, calls.who.blocks, calls.other.epoch);
    std::vector<simt::Pack16*> data;
    for (int rank = 0; rank < calls.who.ranks; ++rank) {
        T* const elements = scene.allocate<T>(kMostElements, "data", rank);
        data.push_back(reinterpret_cast<simt::Pack16*>(elements));
    }
    auto* const all_data = scene.multicast<simt::Pack16>(data, kPacks, "all data");
    for (int rank = 0; rank < calls.who.ranks; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers_of<T>(scene, calls, rank);
        const MulticastParams call{kernel_call<T>(calls, mine, rank, timeout), arrivals[r], data[r],
                                   all_data, two_shots};
        launch_calls<T>(scene, calls, 0, rank, mine.in, mine.out, timeout,
                        [=](const ThreadBlock& block, std::size_t count) {
                            Multicast<T> kernel{call};
                            kernel.count = count;
                            kernel(block);
                        });
    }
}

template <class T>
void add(ByRule& rules, const std::string& type) {
    constexpr Unit kPack{.elements = sizeof(simt::Pack16) / sizeof(T), .has_steps = true};
    rules.add("multicast/one_shot" + type, kPack, Collective::kAllReduce,
              [](Scene& scene, const Calls& calls) { by_switch<T>(scene, calls, false); });
    rules.add("multicast/two_shots" + type, kPack, Collective::kAllReduce,
              [](Scene& scene, const Calls& calls) { by_switch<T>(scene, calls, true); });
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    ByRule rules;
    add<float>(rules, "");
    add<std::uint32_t>(rules, "/words");
    std::vector<explore::Protocol> scenes = std::move(rules.scenes);
    for (const bool two_shots : {false, true}) {
        const auto scene = [&](const std::string& name, const Calls& calls, unsigned sample = 0) {
            scenes.push_back({(two_shots ? "multicast/two_shots/" : "multicast/one_shot/") + name,
                              [=](Scene& scene) { by_switch<float>(scene, calls, two_shots); },
                              true, sample});
        };
        scene("2x1", {{2}, {8, 4}}, 3000);
        scene("2x1/odd", {{2}, {5, 3}}, 500);
        scene("2x2", {{2, 2}, {8}});
        scene("2x1x2", {{2, 1, 2}, {8}}, 1000);
        scene("2x2x2", {{2, 2, 2}, {16}}, 500);  // threads of a block that know more than thread 0
        scene("3x1", {{3}, {20, 4}}, 500);       // more packs than ranks
    }
    return explore::explore_main(argc, argv, scenes);
}
