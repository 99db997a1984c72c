// Batches of work by rule: of each number of items, with little room and much, for one block and
// several.

#include <fmt/ranges.h>

#include <array>

#include "labs/05_device_prims/explore/work_batches.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/pairs.hpp"

int main(int argc, char** argv) {
    using namespace symm;
    constexpr std::array<std::uint32_t, 5> kFirst = {0, 1, 3, ~1U, ~7U};
    const std::vector<std::vector<std::uint32_t>> items = {{1, 1, 1}, {2, 3, 1}, {3, 3, 3},
                                                           {4, 1, 4}, {1, 4, 2}, {3, 4, 4}};
    std::vector<explore::Protocol> scenes;
    for (const explore::Setting& s :
         explore::every_pair({3, 2, kFirst.size(), items.size(), 3, 3, 2, 3}, 0)) {
        Batches batches;
        batches.threads = static_cast<unsigned>(s[0] + 1);
        batches.blocks = static_cast<unsigned>(s[1] + 1);
        batches.first = kFirst.at(s[2]);
        batches.items = items[s[3]];
        const std::size_t room = s[4] + 1;
        batches.left = s[5] == 2 ? ~0U : static_cast<std::uint32_t>(s[5]);
        batches.entries = s[6] == 0 ? 4 : 8;
        batches.channels = batches.blocks + static_cast<std::uint32_t>(s[7]);
        const auto fill = [=](explore::Scene& scene) {
            (room == 1   ? work_batches<1>
             : room == 2 ? work_batches<2>
                         : work_batches<3>)(scene, batches);
        };
        scenes.push_back(
            {fmt::format("by_rule/batches/{}x{}/{}/holds{}/after{}/{}of{}{}", batches.threads,
                         batches.blocks, fmt::join(batches.items, "+"), room,
                         static_cast<int>(batches.first), batches.channels, batches.entries,
                         s[5] == 2 ? "" : fmt::format("/leave{}", batches.left)),
             fill, batches.threads * batches.blocks == 1, 10});
    }
    return explore::explore_main(argc, argv, scenes);
}
