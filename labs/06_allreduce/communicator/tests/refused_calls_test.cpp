// Calls that a rank refuses, or that differ from other ranks': nothing is queued for them, and no
// later call gets their data; or the limit ends them.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "common/cuda/device_memory.hpp"
#include "common/emu/faults.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/06_allreduce/communicator/own_collective.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::size_t kBytes = 1 << 14;

/// A call that no rank can make, by the offsets of its buffers in their windows.
struct Impossible {
    const char* why;
    std::size_t in;
    std::size_t out;
    std::size_t count;
    Arithmetic arithmetic = {};
    Algorithm algorithm = Algorithm::kAuto;
    bool one_window = false;
};

const std::vector<Impossible> kImpossible{
    {"aligned", 2, 0, 100},
    {"aligned", 0, 1, 100, {}, Algorithm::kTwoShot},
    {"window", 0, 0, kBytes, {}, Algorithm::kTwoShot},
    {"", 0, 0, ~std::size_t{0}},
    {"overlap", 0, 8, 100, {}, Algorithm::kAuto, true},
    {"", 0, ~std::size_t{0}, 100, {}, Algorithm::kOneShot},
    {"", 0, 0, 10, {DataType::kInt32}, Algorithm::kSentinel},
    {"DataType", 0, 0, 10, {static_cast<DataType>(99)}},
    {"ReduceOp", 0, 0, 10, {DataType::kFloat, static_cast<ReduceOp>(99)}},
    {"99 is not a valid Collective", 0, 0, 10, {.collective = static_cast<Collective>(99)}},
    {"Algorithm", 0, 0, 100, {}, static_cast<Algorithm>(99)},
    {"Algorithm", 0, 0, 100, {}, static_cast<Algorithm>(-1)},
    {"overlap", 0, 40, 100, {.collective = Collective::kReduceScatter}, Algorithm::kAuto, true},
    {"overlap", 0, 40, 100, {.collective = Collective::kAllGather}, Algorithm::kAuto, true},
    {"aligned", 2, 0, 10, {.collective = Collective::kAllGather}},
    {"", 0, 0, ~std::size_t{0} / 8 + 1, {.collective = Collective::kReduceScatter}},
    {"", 0, 0, ~std::size_t{0} / 8 + 1, {.collective = Collective::kAllGather}},
    {"", 0, 0, 10, {.collective = Collective::kAllGather}, Algorithm::kSentinel},
    {"", 0, 0, 10, {.collective = Collective::kReduceScatter}, Algorithm::kSentinel},
};

TEST(RefusedCalls, LeaveLaterCallsRight) {
    on_ranks(2, [](Side& side) {
        const CUdeviceptr in = side.allocate(kBytes);
        const CUdeviceptr out = side.allocate(kBytes);
        const auto algorithms = algorithms_of(2);
        std::mt19937 random(1);  // the same calls on all ranks
        for (int round = 0; round < 3; ++round) {
            for (const Impossible& call : kImpossible) {
                SCOPED_TRACE(fmt::format("offsets {} and {}, {} elements: {}", call.in, call.out,
                                         call.count, call.why));
                const CUdeviceptr to = (call.one_window ? in : out) + call.out;
                EXPECT_THAT(
                    [&] {
                        side.call(in + call.in, to, call.count, call.arithmetic, call.algorithm);
                    },
                    ::testing::ThrowsMessage<std::invalid_argument>(HasSubstr(call.why)));
                if (random() % 2 == 0) {
                    side.reduce_and_check(in, out, 1 + random() % 1000, {},
                                          algorithms.at(random() % algorithms.size()));
                }
            }
        }
    });
}

// Sizes that wrap, and buffers that end beyond the last address, in windows and outside of them.
TEST(RefusedCalls, AreThoseOfMoreThanAnyMemory) {
    for (const int ranks : {1, 2}) {
        on_ranks(ranks, [](Side& side) {
            const CUdeviceptr window = side.allocate(kBytes);
            const DeviceMemory memory(kBytes);
            constexpr std::size_t kAll = ~std::size_t{0};
            const auto refused = [&](CUdeviceptr in, CUdeviceptr out, std::size_t count) {
                for (const Collective collective : kCollectives) {
                    EXPECT_THAT(text_thrown_by(
                                    [&] { side.call(in, out, count, {.collective = collective}); }),
                                HasSubstr("do not fit in any memory"))
                        << count;
                }
            };
            for (const std::size_t count : {kAll, kAll / 2, kAll / 4, kAll / 4 - 99, kAll / 8,
                                            kAll / 16 + 1, std::size_t{1} << 56}) {
                refused(window, window, count);
                refused(memory.address(), memory.address(), count);
            }
            refused(window, ~CUdeviceptr{15}, 100);
            refused(~CUdeviceptr{15}, window, 100);
            for (const std::size_t bytes : {kAll, kAll / 2, kAll - 4096}) {
                EXPECT_ANY_THROW(side.allocate(bytes));
                EXPECT_ANY_THROW(side.communicator.register_memory(window, bytes));
            }
            side.reduce_and_check(window, window, 100, {}, Algorithm::kAuto);
        });
    }
}

// A structure lacks a function: all ranks are told, and can go on.
TEST(RefusedCalls, AreThoseOfACollectiveWithoutItsFunctions) {
    on_ranks(2, [](Side& side) {
        OwnNeeds needs;
        const auto some_blocks = [](unsigned) { return 8U; };
        if (side.rank.rank() == 0) {
            needs.resident = some_blocks;
        }
        EXPECT_THAT(text_thrown_by([&] { OwnCollective(side.communicator, needs); }),
                    HasSubstr("OwnNeeds::resident is empty"));
        needs.resident = some_blocks;
        const OwnCollective own(side.communicator, needs);
        EXPECT_THAT(text_thrown_by([&] { own.queue("nothing", side.stream.get(), [] {}, {}); }),
                    HasSubstr("needs both functions"));
        const CUdeviceptr window = side.allocate(kBytes);
        side.reduce_and_check(window, window, 100, {}, Algorithm::kAuto);
    });
}

// Rank 0 has queued the call that rank 1 refuses. Rank 1's next call must not take part in it.
TEST(RefusedCalls, OfOneRankEndTheCommunicator) {
    const VariableInForce timeout("SYMM_TIMEOUT", "0.1");
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank, {.limit = 20s});
        const CUdeviceptr window = side.allocate(kBytes);
        if (rank.rank() == 1) {
            EXPECT_THROW(side.call(window + 2, window + 2, 100), std::invalid_argument);
            EXPECT_THAT(text_thrown_by([&] { side.call(window, window, 100); }),
                        HasSubstr("no word from rank 0"));
        } else {
            side.call(window, window, 100);
            EXPECT_THROW(side.synchronize(), std::runtime_error);
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
            for (const Algorithm algorithm : algorithms_of(2)) {
                side.call(buffer, buffer + 1, 0, {}, algorithm);
            }
            side.reduce_and_check(window, window, 100, {}, Algorithm::kTwoShot);
        });
    }
}

// The launch fails on one rank: all ranks fail, soon and with its error.
TEST(RefusedCalls, OfTheDriverFailOnAllRanks) {
    SYMM_NEEDS(is_emulated());
    for (const Algorithm algorithm : algorithms_of(2)) {
        const auto start = std::chrono::steady_clock::now();
        run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
            Side side(rank, {.limit = 20s});
            const CUdeviceptr window = side.allocate(kBytes);
            side.first_call(window, algorithm);
            rank.bootstrap().barrier("before");
            if (rank.rank() == 0) {
                emu::fail_call("cuLaunchKernel", 1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
            }
            rank.bootstrap().barrier("armed");
            const auto call = [&] {
                side.call(window, window, 100, {}, algorithm);
                side.synchronize();
            };
            EXPECT_THAT(text_thrown_by(call), HasSubstr("LAUNCH_OUT_OF_RESOURCES"));
        });
        emu::clear_failures();
        EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
    }
}

// Each difference of rank 1's call from rank 0's, and the error on both.
TEST(Communicator, NamesCallsThatDiffer) {
    struct Difference {
        std::size_t count;
        Arithmetic arithmetic;
        bool window;
        std::string told;
    };
    const VariableInForce check("SYMM_CHECK", "1");
    for (const Difference& other :
         {Difference{99, {}, true, "rank 1 makes call 2: allreduce of 99 x float"},
          Difference{100, {DataType::kInt32}, true, "100 x int32, sum"},
          Difference{100, {DataType::kFloat, ReduceOp::kMax}, true, "100 x float, max"},
          Difference{100,
                     {.collective = Collective::kReduceScatter},
                     true,
                     "call 2: reducescatter of 100 x float"},
          Difference{100, {}, false, "buffers in no windows"}}) {
        on_ranks(2, [&](Side& side) {
            const CUdeviceptr window = side.allocate(1 << 12);
            const DeviceMemory no_window(1 << 12);
            const auto call = [&](const Difference& how) {
                const CUdeviceptr buffer = how.window ? window : no_window.address();
                side.call(buffer, buffer + 2048, how.count, how.arithmetic);
                side.synchronize();
            };
            const Difference same{100, {}, true, ""};
            call(same);
            EXPECT_THAT([&] { call(side.rank.rank() == 1 ? other : same); },
                        ::testing::ThrowsMessage<std::invalid_argument>(::testing::AllOf(
                            HasSubstr(other.told),
                            HasSubstr("rank 0 makes call 2: allreduce of 100 x float, sum"))));
            call(same);  // nothing was queued, so the communicator can still be used
        });
    }
}

// Without SYMM_CHECK the calls wait for each other until the limit, with any algorithms. None
// returns a sum.
TEST(Communicator, EndsCallsThatDiffer) {
    for (const auto& algorithms : {std::pair{Algorithm::kTwoShot, Algorithm::kSentinel},
                                   std::pair{Algorithm::kOneShot, Algorithm::kTwoShot},
                                   std::pair{Algorithm::kPush, Algorithm::kSentinel},
                                   std::pair{Algorithm::kChunks, Algorithm::kSentinel},
                                   std::pair{Algorithm::kCopy, Algorithm::kSentinel}}) {
        if (algorithms.first == Algorithm::kCopy && !has_copy(2)) {
            continue;
        }
        const auto body = [&algorithms](Side& side) {
            const CUdeviceptr window = side.allocate(1 << 12);
            side.first_call(window, algorithms.first);
            side.call(window, window, 100, {},
                      side.rank.rank() == 0 ? algorithms.first : algorithms.second);
            EXPECT_THROW(side.synchronize(), std::runtime_error);
        };
        on_ranks(2, body, {.limit = kShortLimit});
    }
}

}  // namespace
}  // namespace symm
