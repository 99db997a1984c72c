// Calls that a rank refuses: nothing is queued for them, and no later call gets their data.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "common/cuda/device_memory.hpp"
#include "common/emu/faults.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::size_t kBytes = 1 << 14;

/// Calls that no rank can make.
std::vector<std::function<void(Side&, CUdeviceptr, CUdeviceptr)>> impossible_calls() {
    const auto of_floats = [](std::size_t in, std::size_t out, std::size_t count,
                              Algorithm algorithm) {
        return [=](Side& side, CUdeviceptr a, CUdeviceptr b) {
            side.call(a + in, b + out, count, {}, algorithm);
        };
    };
    return {of_floats(2, 0, 100, Algorithm::kAuto),
            of_floats(0, 1, 100, Algorithm::kTwoShot),
            of_floats(0, 0, kBytes, Algorithm::kTwoShot),  // beyond the window
            of_floats(0, 0, ~std::size_t{0}, Algorithm::kAuto),
            of_floats(0, 0, 100, static_cast<Algorithm>(77)),
            [](Side& side, CUdeviceptr a, CUdeviceptr) {
                side.call(a, a + 8, 100, {}, Algorithm::kAuto);  // overlapping
            },
            [](Side& side, CUdeviceptr a, CUdeviceptr) {
                side.call(a, 0, 100, {}, Algorithm::kOneShot);
            },
            [](Side& side, CUdeviceptr a, CUdeviceptr b) {
                side.call(a, b, 10, {static_cast<DataType>(99)}, Algorithm::kAuto);
            },
            [](Side& side, CUdeviceptr a, CUdeviceptr b) {
                side.call(a, b, 10, {DataType::kInt32}, Algorithm::kSentinel);
            },
            [](Side& side, CUdeviceptr a, CUdeviceptr b) {
                side.communicator.call(static_cast<Collective>(99), a, b, 10, DataType::kFloat,
                                       ReduceOp::kSum, side.stream.get());
            }};
}

TEST(RefusedCalls, LeaveLaterCallsRight) {
    on_ranks(2, [](Side& side) {
        const CUdeviceptr in = side.allocate(kBytes);
        const CUdeviceptr out = side.allocate(kBytes);
        const auto impossible = impossible_calls();
        std::mt19937 random(1);  // the same calls on all ranks
        for (int call = 0; call < 150; ++call) {
            if (random() % 3 != 0) {
                EXPECT_THROW(impossible.at(random() % impossible.size())(side, in, out),
                             std::invalid_argument);
            } else {
                const auto algorithms = all_algorithms(2);
                side.reduce_and_check(in, out, 1 + random() % 1000, {},
                                      algorithms.at(random() % algorithms.size()));
            }
        }
    });
}

// Rank 0 has queued the call that rank 1 refuses. Rank 1's next call must not take part in it.
TEST(RefusedCalls, OfOneRankEndTheCommunicator) {
    const VariableInForce timeout("SYMM_TIMEOUT", "0.1");
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        Communicator communicator(rank, {.limit = 20s});
        const Stream stream;
        const CUdeviceptr window = communicator.allocate(kBytes);
        const auto call = [&](CUdeviceptr buffer) {
            communicator.all_reduce(buffer, buffer, 100, DataType::kFloat, ReduceOp::kSum,
                                    stream.get());
        };
        if (rank.rank() == 1) {
            EXPECT_THROW(call(window + 2), std::invalid_argument);
            EXPECT_THAT(text_thrown_by([&] { call(window); }), HasSubstr("no word from rank 0"));
        } else {
            call(window);
            EXPECT_THROW(communicator.synchronize(stream, "the call"), std::runtime_error);
        }
    });
}

TEST(RefusedCalls, OfOneRankAreRefusedByAllIfCallsAreCompared) {
    const VariableInForce check("SYMM_CHECK", "1");
    on_ranks(3, [](Side& side) {
        const CUdeviceptr window = side.allocate(kBytes);
        for (int round = 0; round < 3; ++round) {
            const std::string told = text_thrown_by([&] {
                side.call(window + (side.rank.rank() == 1 ? 2 : 0), window + 4096, 100, {},
                          Algorithm::kAuto);
            });
            EXPECT_THAT(told, HasSubstr("float buffers must be aligned to 4 bytes"));
            EXPECT_EQ(told.find("rank 1 refuses its call") == 0, side.rank.rank() != 1) << told;
            side.reduce_and_check(window, window, 100, {}, Algorithm::kAuto);
        }
    });
}

// An empty call touches no memory, so each rank may pass any addresses.
TEST(RefusedCalls, AreNotThoseOfNoElements) {
    for (const char* check : {"0", "1"}) {
        const VariableInForce compared("SYMM_CHECK", check);
        on_ranks(2, [](Side& side) {
            const CUdeviceptr window = side.allocate(kBytes);
            const CUdeviceptr buffer = side.rank.rank() == 1 ? 0 : window;
            for (const Algorithm algorithm : all_algorithms(2)) {
                side.call(buffer, buffer + 1, 0, {}, algorithm);
            }
            side.reduce_and_check(window, window, 100, {}, Algorithm::kTwoShot);
        });
    }
}

// The launch fails on one rank: all ranks fail, soon and with its error.
TEST(RefusedCalls, OfTheDriverFailOnAllRanks) {
    if (!is_emulated()) {
        return;  // failures are injected into the emulated driver
    }
    for (const Algorithm algorithm : all_algorithms(2)) {
        const auto start = std::chrono::steady_clock::now();
        run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
            Communicator communicator(rank, {.limit = 20s});
            const Stream stream;
            const CUdeviceptr window = communicator.allocate(kBytes);
            first_call(communicator, window, stream, algorithm);
            rank.bootstrap().barrier("before");
            if (rank.rank() == 0) {
                emu::fail_call("cuLaunchKernel", 1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
            }
            rank.bootstrap().barrier("armed");
            const auto call = [&] {
                communicator.all_reduce(window, window, 100, DataType::kFloat, ReduceOp::kSum,
                                        stream.get(), algorithm);
                communicator.synchronize(stream, "the call");
            };
            EXPECT_THAT(text_thrown_by(call), HasSubstr("LAUNCH_OUT_OF_RESOURCES"));
        });
        emu::clear_failures();
        EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
    }
}

}  // namespace
}  // namespace symm
