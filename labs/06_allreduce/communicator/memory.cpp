#include "labs/06_allreduce/communicator/memory.hpp"

#include <bit>

#include "common/cuda/copy.hpp"
#include "labs/06_allreduce/algorithms/two_shot_push/two_shot_push.hpp"

namespace symm {
namespace {

/// A packet carries eight bytes of data.
constexpr unsigned kPacketsPerSender = kOneShotLimit / 8;
static_assert(std::has_single_bit(kPacketsPerSender));
static_assert(kMaxAllReduceRanks <= kMaxBarrierRanks);

/// One sender's packs in a region of push: whole cache lines.
unsigned push_packs(int ranks) {
    const auto packs = static_cast<unsigned>(push_limit(ranks) / sizeof(simt::Pack16));
    return (packs_per_part(packs, ranks) + 7) / 8 * 8;
}

}  // namespace

ScratchPlace scratch_place(Algorithm algorithm, int ranks) {
    const ScratchPlace packets{&CommunicatorMemory::one_shot, offsetof(CommunicatorMemory, scratch),
                               kPacketsPerSender, 1};
    const ScratchPlace packs{&CommunicatorMemory::sentinel, packets.end(ranks),
                             static_cast<unsigned>(sentinel_limit(ranks) / sizeof(simt::Pack16)),
                             1};
    switch (algorithm) {
        case Algorithm::kOneShot:
            return packets;
        case Algorithm::kSentinel:
            return packs;
        default:
            return {&CommunicatorMemory::push, packs.end(ranks), push_packs(ranks), 2};
    }
}

void initialize(const SymmetricRange& memory, int ranks) {
    const std::size_t zeros = scratch_place(Algorithm::kSentinel, ranks).offset;
    zero(memory.local(), zeros);
    fill(memory.local() + zeros, 0xff, memory.size() - zeros);  // the sentinel
}

}  // namespace symm
