#pragma once
/// \file
/// What is where: look-ups by address, with the emulator's mutex held.

#include <cuda.h>

#include <map>

#include "common/emu/emulator.hpp"

namespace symm::emu {

/// The entry of a map keyed by base address whose range holds `pointer`, or end().
template <class Map>
auto entry_at(Map& map, CUdeviceptr pointer) {
    auto next = map.upper_bound(pointer);
    if (next == map.begin()) {
        return map.end();
    }
    --next;
    return pointer - next->first < next->second.size ? next : map.end();
}

/// The mappings that fill [pointer, pointer + size) exactly or, with `holes`, whose gaps are
/// unmapped: first and one past the last. Empty where the range cuts one or holds none.
using MappingRange =
    std::pair<std::map<CUdeviceptr, Mapping>::iterator, std::map<CUdeviceptr, Mapping>::iterator>;
enum class Holes { kAllowed, kNone };
MappingRange whole_mappings(Emulator& e, CUdeviceptr pointer, std::size_t size, Holes holes);

}  // namespace symm::emu
