#pragma once
/// \file
/// Look-ups by address, and mapping. All need the emulator's mutex.

#include <cuda.h>

#include <map>

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

/// The mappings in [pointer, pointer + size). Refuses if there is none, or if the range cuts one in
/// two.
struct Mappings {
    using Iterator = std::map<CUdeviceptr, Mapping>::iterator;
    Iterator begin() const { return first; }
    Iterator end() const { return last; }
    Iterator first, last;
};
Mappings whole_mappings(Emulator& e, CUdeviceptr pointer, std::size_t size);

/// Maps the file of plain memory, and records the memory under the address of that mapping, which
/// it returns.
CUdeviceptr keep_plain(Emulator& e, PlainMemory memory);

}  // namespace symm::emu
