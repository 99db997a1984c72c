#include "labs/06_allreduce/algorithms/workspace.hpp"

#include <algorithm>
#include <numeric>

#include "common/cuda/copy.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/03_ipc/multicast_range.hpp"
#include "labs/06_allreduce/algorithms/kernels.hpp"

namespace symm {

Workspace::Workspace(Rank& of)
    : rank(of), offsets_(offsets(of.size())), memory_(of, bytes(of.size())) {
    rank.bootstrap().together("communicator's memory", [&] {
        zero(memory_.local(), memory_.size());
        for (const AlgorithmRow& row : algorithm_rows()) {
            row.kernels->initialize(
                memory_.local() + offsets_.at(static_cast<std::size_t>(row.algorithm)),
                rank.size());
        }
    });
}

Workspace::~Workspace() = default;

std::size_t Workspace::bytes(int ranks) {
    return offsets(ranks).back();
}

Workspace::Offsets Workspace::offsets(int ranks) {
    std::array<std::size_t, kAlgorithms + kMostLoaded + 1> sizes{
        round_up(sizeof(BarrierMemory), kCacheLine)};
    for (const AlgorithmRow& row : algorithm_rows()) {
        std::size_t& size = sizes.at(static_cast<std::size_t>(row.algorithm));
        size = std::max(size, round_up(row.kernels->memory(ranks), kCacheLine));
    }
    Offsets offsets{};
    std::partial_sum(sizes.begin(), sizes.end(), offsets.begin() + 1);
    return offsets;
}

void Workspace::make_slots() {
    if (slots == nullptr) {
        slots = std::make_unique<SlotMemory>(rank);
    }
}

}  // namespace symm
