// Prints the tuner's choice on emulated GPUs for a call of the given bytes of floats, for each
// number of ranks: `plans 128K`. For the course.

#include <fmt/core.h>

#include <cstdio>
#include <exception>

#include "common/sys/bytes.hpp"
#include "labs/06_allreduce/tuning/tuner.hpp"

namespace symm {

struct AlgorithmKernels {};  // the tuner runs none
#define SYMM_EMPTY(kernels) extern const AlgorithmKernels kernels{};
SYMM_ALL_KERNELS(SYMM_EMPTY)

}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    try {
        const std::size_t bytes = parse_bytes(argc > 1 ? argv[1] : "1M");
        Tuner tuner{TuningTable::from_environment(), 2, {{2, 32}, {2, 32}, true}, {}};
        for (int& ranks = tuner.ranks; ranks <= kMaxAllReduceRanks; ++ranks) {
            const CallPlan plan =
                tuner.plan({{}, 0, 0, bytes / sizeof(float)}, true, Algorithm::kAuto);
            fmt::print("{} ranks: {} ({})\n", ranks, name_of(plan.algorithm),
                       describe(plan, ranks));
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "error: {}\n", error.what());
        return 2;
    }
}
