#include "labs/06_allreduce/algorithms/workspace.hpp"

#include "common/cuda/copy.hpp"
#include "labs/06_allreduce/algorithms/kernels.hpp"

namespace symm {

Workspace::Workspace(Rank& of)
    : rank(of), offsets_(offsets(of.size())), memory_(of, bytes(of.size())) {
    rank.bootstrap().together("communicator's memory", [&] {
        zero(memory_.local(), memory_.size());
        for (const AlgorithmKernels* kernels : all_kernels()) {
            kernels->initialize(
                memory_.local() + offsets_.at(static_cast<std::size_t>(kernels->algorithm)),
                rank.size());
        }
    });
}

std::size_t Workspace::bytes(int ranks) {
    return offsets(ranks).back();
}

Workspace::Offsets Workspace::offsets(int ranks) {
    Offsets offsets{};
    std::size_t end = whole_lines(sizeof(BarrierMemory));
    for (std::size_t a = 1; a <= kAlgorithms; ++a) {
        offsets.at(a) = end;
        for (const AlgorithmKernels* kernels : all_kernels()) {
            if (kernels->algorithm == static_cast<Algorithm>(a)) {
                end += whole_lines(kernels->memory(ranks));
            }
        }
    }
    offsets.back() = end;
    return offsets;
}

}  // namespace symm
