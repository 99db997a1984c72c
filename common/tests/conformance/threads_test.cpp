// Several threads call the driver at the same time, for many rounds.

#include <thread>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Threads = Driver;

// One allocation from its first step to its last.
void one_round(std::size_t bytes, unsigned seed) {
    Memory memory(memory_of(0), bytes);
    Range range(bytes);
    range.map(memory, 0, {0});
    expect_written(range.base() + bytes - 1000, 1000, seed);
}

TEST_F(Threads, AllocateSideBySide) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i) {
        threads.emplace_back([i] {
            EXPECT_OK(cuCtxSetCurrent(primary_context()));
            for (unsigned round = 0; round < 10 && !HasFailure(); ++round) {
                one_round(unit() * (1 + i), 16 * i + round);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

TEST_F(Threads, RoundsLeaveNothingBehind) {
    // More rounds than open files a process may have: a leak of one per round would be an error.
    for (unsigned round = 0; round < 1500 && !HasFailure(); ++round) {
        one_round(unit(), round);
    }
}

}  // namespace
}  // namespace symm::conformance
