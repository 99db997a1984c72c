#include "labs/06_allreduce/algorithms/peer_slots/slot_memory.hpp"

#include <algorithm>

#include "common/cuda/copy.hpp"
#include "common/cuda/driver.hpp"

namespace symm {
namespace {

constexpr std::size_t kHead = 1024;  // before the first slot
static_assert(sizeof(TrustMemory) <= kHead);

/// Bytes of one rank's slots for inputs, or for sums.
std::size_t of_one_trip(int ranks, std::size_t slot_bytes) {
    return static_cast<std::size_t>(std::max(ranks - 1, 1)) * slot_bytes;
}

}  // namespace

std::size_t peer_slot_bytes(int ranks) {
    const std::size_t unit = std::size_t{1} << (is_emulated() ? 9 : 20);
    return (1024 / static_cast<std::size_t>(std::max(ranks, 2)) + 1) * unit;
}

SlotMemory::SlotMemory(Rank& rank, std::size_t slot_bytes)
    : memory_(rank, bytes(rank.size(), slot_bytes)),
      inputs_{memory_.pointer<simt::Pack16>(kHead), slot_bytes / sizeof(simt::Pack16)},
      sums_{memory_.pointer<simt::Pack16>(kHead + of_one_trip(rank.size(), slot_bytes)),
            inputs_.packs},
      trust_{memory_.pointer<TrustMemory>(), rank.rank(), rank.size()} {
    rank.bootstrap().together("peer slots", [&] { zero(memory_.local(), kHead); });
}

std::size_t SlotMemory::bytes(int ranks, std::size_t slot_bytes) {
    return kHead + 2 * of_one_trip(ranks, slot_bytes);
}

}  // namespace symm
