#pragma once
/// \file
/// Look-ups by address. All need the emulator's mutex.

#include <cuda.h>

#include <map>
#include <utility>

#include "common/emu/emulator.hpp"

namespace symm::emu {

/// The entry of a map keyed by base address that holds all of [pointer, pointer + size), or end().
template <class Map>
auto entry_at(Map& map, CUdeviceptr pointer, std::size_t size = 1) {
    auto next = map.upper_bound(pointer);
    if (next == map.begin()) {
        return map.end();
    }
    --next;
    const std::size_t offset = pointer - next->first, length = next->second.size;
    return offset < length && size <= length - offset ? next : map.end();
}

/// Whether an entry of the map overlaps [pointer, pointer + size).
template <class Map>
bool overlaps(const Map& map, CUdeviceptr pointer, std::size_t size) {
    const auto next = map.lower_bound(pointer);
    return (next != map.end() && next->first < pointer + size) ||
           entry_at(map, pointer) != map.end();
}

/// The mappings in [pointer, pointer + size): the first and one past the last. Empty where the
/// range cuts a mapping in two or holds none, and, with Holes::kNone, where they do not fill it.
using MappingRange =
    std::pair<std::map<CUdeviceptr, Mapping>::iterator, std::map<CUdeviceptr, Mapping>::iterator>;
enum class Holes { kAllowed, kNone };
MappingRange whole_mappings(Emulator& e, CUdeviceptr pointer, std::size_t size, Holes holes);

}  // namespace symm::emu
