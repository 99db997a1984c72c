#include "common/emu/memory/lossy.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "common/emu/emulator.hpp"

namespace symm::emu {
namespace {

bool loses(bool LossyPair::*what, int from, int owner) {
    const auto& pairs = emulator().configuration.lossy;
    return std::ranges::any_of(pairs, [&](const LossyPair& pair) {
        return pair.from == from && pair.owner == owner && pair.*what;
    });
}

// Maps the memory itself (MAP_SHARED) or a copy of it (MAP_PRIVATE) at the address of the mapping.
bool show(CUdeviceptr base, const Mapping& mapping, int sharing) {
    return ::mmap(at(base), mapping.size, PROT_READ | PROT_WRITE, sharing | MAP_FIXED,
                  mapping.physical->fd.get(), 0) != MAP_FAILED;
}

}  // namespace

bool loses_copies(int from, int owner) {
    return loses(&LossyPair::copies, from, owner);
}

LossyView::LossyView(int device) {
    const auto& pairs = emulator().configuration.lossy;
    if (std::ranges::none_of(pairs, [&](const LossyPair& pair) {
            return pair.from == device && (pair.loads || pair.stores);
        })) {
        return;  // the lock would order one rank's kernel before another's
    }
    const Changing e;
    for (auto& [base, mapping] : e->mappings) {
        const int owner = mapping.physical->owner();
        const bool loads = loses(&LossyPair::loads, device, owner);
        const bool stores = loses(&LossyPair::stores, device, owner);
        if (mapping.rights[device] == 0 || mapping.lossy_view || !(loads || stores) ||
            !show(base, mapping, MAP_PRIVATE)) {
            continue;
        }
        View view{base, {}, !stores};
        if (loads) {
            auto* words = static_cast<std::uint32_t*>(at(base));
            view.inverted.assign(words, words + mapping.size / sizeof(*words));
            std::ranges::transform(view.inverted, view.inverted.begin(), std::bit_not());
            std::ranges::copy(view.inverted, words);
        }
        ::mprotect(at(base), mapping.size, mapping.protection);
        mapping.lossy_view = true;
        views_.push_back(std::move(view));
    }
}

LossyView::~LossyView() {
    if (views_.empty()) {
        return;
    }
    const Changing e;
    for (const View& view : views_) {
        const auto found = e->mappings.find(view.base);
        if (found == e->mappings.end() || !found->second.lossy_view) {
            continue;  // unmapped meanwhile
        }
        Mapping& mapping = found->second;
        auto* words = static_cast<std::uint32_t*>(at(view.base));
        ::mprotect(words, mapping.size, PROT_READ);
        const std::vector<std::uint32_t> left(words, words + view.inverted.size());
        show(view.base, mapping, MAP_SHARED);
        for (std::size_t i = 0; view.stores_arrive && i < left.size(); ++i) {
            if (left[i] != view.inverted[i]) {
                words[i] = left[i];
            }
        }
        ::mprotect(words, mapping.size, mapping.protection);
        mapping.lossy_view = false;
    }
}

}  // namespace symm::emu
