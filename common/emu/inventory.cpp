#include "common/emu/inventory.hpp"

#include <fmt/core.h>

#include <utility>

#include "common/emu/contexts.hpp"
#include "common/emu/emulator.hpp"

namespace symm::emu {

Inventory inventory() {
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    Inventory all;
    all.physical_allocations = e.physicals.size();
    for (const auto& [handle, physical] : e.physicals) {
        all.physical_bytes += physical->size;
        all.handle_references += static_cast<std::size_t>(physical->references);
    }
    all.reservations = e.reservations.size();
    for (const auto& [base, reservation] : e.reservations) {
        all.reserved_bytes += reservation.size;
    }
    all.mappings = e.mappings.size();
    for (const auto& [base, memory] : e.plain) {
        switch (memory.kind) {
            case PlainMemory::Kind::kDevice:
                ++all.plain_allocations;
                break;
            case PlainMemory::Kind::kPinnedHost:
                ++all.pinned_host_allocations;
                break;
            case PlainMemory::Kind::kOpened:
                all.ipc_openings += static_cast<std::size_t>(memory.openings);
                break;
        }
    }
    all.contexts = e.contexts.size();
    all.streams = e.streams.size();
    all.events = e.events.size();
    all.graphs = e.graphs.size();
    all.graph_executables = e.executables.size();
    return all;
}

std::string describe(const Inventory& all) {
    const std::pair<const char*, std::size_t> counts[] = {
        {"physical allocations", all.physical_allocations},
        {"physical bytes", all.physical_bytes},
        {"handle references", all.handle_references},
        {"reservations", all.reservations},
        {"reserved bytes", all.reserved_bytes},
        {"mappings", all.mappings},
        {"plain allocations", all.plain_allocations},
        {"pinned host allocations", all.pinned_host_allocations},
        {"ipc openings", all.ipc_openings},
        {"contexts", all.contexts},
        {"streams", all.streams},
        {"events", all.events},
        {"graphs", all.graphs},
        {"graph executables", all.graph_executables},
    };
    std::string text;
    for (const auto& [name, count] : counts) {
        if (count > 0) {
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
        }
    }
    return text.empty() ? "nothing" : text;
}

}  // namespace symm::emu
