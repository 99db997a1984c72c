#include "common/emu/lossy.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "common/emu/emulator.hpp"

namespace symm::emu {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

void* at(CUdeviceptr pointer) {
    return reinterpret_cast<void*>(pointer);
}

bool loses(bool LossyPair::*what, int from, int owner) {
    const auto& pairs = emulator().configuration.lossy;
    return std::any_of(pairs.begin(), pairs.end(), [&](const LossyPair& pair) {
        return pair.from == from && pair.owner == owner && pair.*what;
    });
}

/// The memory itself, or a private copy of it, at the address of the mapping.
bool show(CUdeviceptr base, const Mapping& mapping, int sharing) {
    return ::mmap(at(base), mapping.size, mapping.protection, sharing | MAP_FIXED,
                  mapping.physical->fd.get(), 0) != MAP_FAILED;
}

/// A copy with every word inverted; returns what the words were, nothing where the system has no
/// more pages.
std::vector<std::uint32_t> show_inverted(CUdeviceptr base, const Mapping& mapping) {
    void* copy =
        ::mmap(nullptr, mapping.size, kReadWrite, MAP_PRIVATE, mapping.physical->fd.get(), 0);
    if (copy == MAP_FAILED) {
        return {};
    }
    auto* words = static_cast<std::uint32_t*>(copy);
    const std::size_t count = mapping.size / sizeof(*words);
    std::vector<std::uint32_t> held(words, words + count);
    std::transform(words, words + count, words, [](std::uint32_t word) { return ~word; });
    // Moved there in one step: host code may be looking.
    if (::mprotect(copy, mapping.size, mapping.protection) != 0 ||
        ::mremap(copy, mapping.size, mapping.size, MREMAP_MAYMOVE | MREMAP_FIXED, at(base)) ==
            MAP_FAILED) {
        ::munmap(copy, mapping.size);
        return {};
    }
    return held;
}

/// Writes the words that are no longer the inverted ones to the memory.
void deliver(CUdeviceptr base, const Mapping& mapping, const std::vector<std::uint32_t>& held) {
    if (::mprotect(at(base), mapping.size, kReadWrite) != 0) {
        return;
    }
    void* memory =
        ::mmap(nullptr, mapping.size, kReadWrite, MAP_SHARED, mapping.physical->fd.get(), 0);
    if (memory == MAP_FAILED) {
        return;
    }
    const auto* seen = static_cast<const std::uint32_t*>(at(base));
    auto* words = static_cast<std::uint32_t*>(memory);
    for (std::size_t i = 0; i < held.size(); ++i) {
        if (seen[i] != ~held[i]) {
            words[i] = seen[i];
        }
    }
    ::munmap(memory, mapping.size);
}

}  // namespace

bool loses_copies(int from, int owner) {
    return loses(&LossyPair::copies, from, owner);
}

LossyView::LossyView(int device) {
    Emulator& e = emulator();
    const auto& pairs = e.configuration.lossy;
    if (std::none_of(pairs.begin(), pairs.end(), [&](const LossyPair& pair) {
            return pair.from == device && (pair.loads || pair.stores);
        })) {
        return;  // the lock would order one rank's kernel before another's
    }
    const WriteLock lock(e.mutex);
    for (auto& [base, mapping] : e.mappings) {
        const int owner = mapping.physical->owner();
        const bool loads = loses(&LossyPair::loads, device, owner);
        const bool stores = loses(&LossyPair::stores, device, owner);
        if (mapping.rights[device] == 0 || mapping.lossy_view || !(loads || stores)) {
            continue;
        }
        Shown shown{base, !stores, {}};
        if (loads) {
            shown.held = show_inverted(base, mapping);
        }
        mapping.lossy_view = loads ? !shown.held.empty() : show(base, mapping, MAP_PRIVATE);
        if (mapping.lossy_view) {
            shown_.push_back(std::move(shown));
        }
    }
}

LossyView::~LossyView() {
    if (shown_.empty()) {
        return;
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    for (const Shown& shown : shown_) {
        const auto found = e.mappings.find(shown.base);
        if (found == e.mappings.end() || !found->second.lossy_view) {
            continue;  // unmapped meanwhile
        }
        Mapping& mapping = found->second;
        if (shown.stores_arrive) {
            deliver(shown.base, mapping, shown.held);
        }
        show(shown.base, mapping, MAP_SHARED);
        mapping.lossy_view = false;
    }
}

}  // namespace symm::emu
