#include "common/emu/inventory.hpp"

#include "common/emu/emulator.hpp"

namespace symm::emu {

Inventory inventory() {
    const Reading e;
    Inventory all{
        {"physical allocations", e->physicals.size()},
        {"reservations", e->reservations.size()},
        {"mappings", e->mappings.size()},
        {"contexts", e->contexts.size()},  // primary ones, too
        {"streams", e->streams.size()},    // without the default ones
        {"events", e->events.size()},
        {"graphs", e->graphs.size()},
        {"graph executables", e->executables.size()},
        {"libraries", e->libraries.size()},
    };
    for (const auto& [handle, physical] : e->physicals) {
        all[physical->team != nullptr ? "multicast bytes" : "physical bytes"] += physical->size;
        all["handle references"] += static_cast<std::size_t>(physical->references);
    }
    for (const auto& [base, reservation] : e->reservations) {
        all["reserved bytes"] += reservation.size;
    }
    for (const auto& [base, memory] : e->plain) {
        if (memory.kind == PlainMemory::Kind::kOpened) {
            all["ipc openings"] += static_cast<std::size_t>(memory.openings);
        } else {
            ++all[memory.on_host() ? "pinned host allocations" : "plain allocations"];
        }
    }
    std::erase_if(all, [](const auto& entry) { return entry.second == 0; });
    return all;
}

}  // namespace symm::emu
