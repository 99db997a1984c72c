// AllReduce over machines that are groups of threads, compared with the reference for all ranks.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "common/cuda/copy.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/graph.hpp"
#include "common/tests/sanitized.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/05_device_prims/reduction/tests/extremes.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"
#include "symm/nodes/exchange.hpp"
#include "symm/nodes/hierarchical_communicator.hpp"
#include "symm/nodes/thread_rail.hpp"

namespace symm {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

/// The number of machines, and of ranks on each.
struct Shape {
    int machines;
    int ranks;
};

void PrintTo(const Shape& shape, std::ostream* out) {
    *out << shape.machines << "x" << shape.ranks;
}

/// Blocks of a launch: few enough that those of all machines' ranks fit on one device.
constexpr unsigned kBlocks = 2;

/// One rank, and all that it needs for a checked call.
struct MachineSide {
    MachineSide(Rank& inside, std::unique_ptr<Rail> rail, std::chrono::nanoseconds limit)
        : rank(inside),
          verifier(rail->machine() * inside.size() + inside.rank(),
                   rail->machines() * inside.size()),
          exchange(inside, std::move(rail), limit / 2),
          communicator(inside, exchange, {.limit = limit, .max_blocks = kBlocks}) {}

    CUdeviceptr allocate(std::size_t bytes) { return communicator.inside().allocate(bytes); }

    /// Queues the call.
    void call(CUdeviceptr in, CUdeviceptr out, std::size_t count, const Arithmetic& what = {}) {
        communicator.all_reduce(in, out, count, what.type, what.op, stream.get());
    }
    void synchronize() { communicator.synchronize(stream, "the AllReduce"); }
    void reduce_and_check(CUdeviceptr in, CUdeviceptr out, std::size_t count,
                          const Arithmetic& what = {}) {
        verifier.poison(stream, what, out, count);
        verifier.fill(stream, what, in, count);
        call(in, out, count, what);
        synchronize();
        verifier.check(stream, what, out, count);
    }

    Rank& rank;
    Verifier verifier;
    Stream stream;
    Exchange exchange;
    HierarchicalCommunicator communicator;  ///< Destroyed first, and tells the others (Rank).
};

template <class Body>
void on_machines(const Shape& shape, const Body& body,
                 std::chrono::nanoseconds limit = Deadline::standard_limit()) {
    run_on_nodes(shape.machines, shape.ranks, [&](Rank& inside, std::unique_ptr<Rail> rail) {
        MachineSide side(inside, std::move(rail), limit);
        body(side);
        inside.bootstrap().barrier("done");
    });
}

class Machines : public ::testing::TestWithParam<Shape> {};

// Fewer elements than ranks, around pieces, and enough to reuse parts; in place and not.
TEST_P(Machines, ReduceAnyCountCallAfterCall) {
    on_machines(GetParam(), [](MachineSide& side) {
        const std::size_t piece =
            Exchange::part_bytes() / sizeof(float) * static_cast<std::size_t>(side.rank.size());
        const std::size_t most = 5 * piece + 3;
        const CUdeviceptr in = side.allocate(most * sizeof(float));
        const CUdeviceptr out = side.allocate(most * sizeof(float));
        for (const std::size_t count :
             {std::size_t{1}, std::size_t{7}, most, piece, std::size_t{1000}, piece + 1}) {
            side.reduce_and_check(in, out, count);
            side.reduce_and_check(in, in, count);
        }
    });
}

TEST_P(Machines, TakeMemoryInNoWindow) {
    on_machines(GetParam(), [](MachineSide& side) {
        const DeviceMemory in(40004);
        const DeviceMemory out(40004);
        side.reduce_and_check(in.address(), out.address(), 10001);
    });
}

INSTANTIATE_TEST_SUITE_P(OfRanks, Machines,
                         ::testing::ValuesIn(testing::kSanitized
                                                 ? std::vector<Shape>{{2, 2}}
                                                 : std::vector<Shape>{
                                                       {2, 2}, {2, 3}, {4, 2}, {3, 1}, {1, 3}}));

TEST(MachinesTypes, AreAllReduced) {
    on_machines({2, 2}, [](MachineSide& side) {
        const CUdeviceptr in = side.allocate(8 * 4099);
        const CUdeviceptr out = side.allocate(8 * 4099);
        for (const DataType type : kDataTypes) {
            for (const ReduceOp op : kReduceOps) {
                side.reduce_and_check(in, out, 4099, {type, op});
            }
        }
    });
}

// With these values another order of additions gives another sum.
TEST(MachinesBits, AreAddedUpInsideThenByMachine) {
    on_machines({3, 2}, [](MachineSide& side) {
        const CUdeviceptr buffer = side.allocate(4096);
        constexpr float kValues[3][2] = {{1e8F, 1}, {-1e8F, 3}, {0.25F, 7}};
        const float mine = kValues[side.exchange.machine()][side.rank.rank()];
        const std::vector<float> all(999, mine);
        copy_to_device(buffer, all.data(), 999 * sizeof(float));
        side.call(buffer, buffer, 999);
        side.synchronize();
        const auto inside = [&](int m) { return kValues[m][0] + kValues[m][1]; };
        const float expected = (inside(0) + inside(1)) + inside(2);
        std::vector<float> sums(999);
        copy_to_host(sums.data(), buffer, 999 * sizeof(float));
        EXPECT_EQ(sums, std::vector<float>(999, expected));
    });
}

TEST(MachinesExtremes, AreReducedInsideAndByMachine) {
    on_machines({3, 1}, [](MachineSide& side) {
        const CUdeviceptr buffer = side.allocate(1 << 16);
        testing::expect_extremes(side.communicator.rank(), side.communicator.ranks(), buffer,
                                 buffer, [&](std::size_t count, DataType type, ReduceOp op) {
                                     side.call(buffer, buffer, count, {type, op});
                                     side.synchronize();
                                 });
    });
}

/// The error that the run throws.
template <class Body>
std::string error_of(const Shape& shape, std::chrono::nanoseconds limit, const Body& body) {
    return testing::text_thrown_by([&] { on_machines(shape, body, limit); });
}

void call(MachineSide& side, std::size_t count) {
    const CUdeviceptr buffer = side.allocate(1 << 20);
    side.reduce_and_check(buffer, buffer, count);
}

TEST(MachinesErrors, DifferentCalls) {
    EXPECT_THAT(error_of({2, 2}, Deadline::standard_limit(),
                         [](MachineSide& side) { call(side, 100 + side.exchange.machine()); }),
                HasSubstr("machine 0 makes call 1 (100 x float"));
}

TEST(MachinesErrors, ARankThatDoesNotCallIsNamed) {
    for (const int guilty : {0, 3}) {
        const auto limit = 4 * kShortLimit;
        EXPECT_THAT(error_of({2, 2}, limit,
                             [&](MachineSide& side) {
                                 call(side, 1000);
                                 const Deadline end = Deadline::after(3 * limit);
                                 while (side.communicator.rank() == guilty && !end.passed()) {
                                     side.exchange.throw_if_failed();
                                     side.rank.bootstrap().throw_async_error("idleness");
                                     std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                 }
                                 call(side, 1000);
                             }),
                    AnyOf(HasSubstr(fmt::format("machine {} did not arrive", guilty / 2)),
                          HasSubstr(fmt::format("rank {}", guilty % 2))))
            << guilty;
    }
}

TEST(MachinesErrors, ARankThatFailsEndsAll) {
    const auto start = std::chrono::steady_clock::now();
    // All end before the limit. But on a shared GPU, a rank that frees its memory waits for the
    // kernels of all ranks, and another rank may wait for it before it can end its own.
    const bool shared = !is_emulated() && device_count() < 4;
    const std::chrono::milliseconds limit = shared ? 4 * kShortLimit : std::chrono::seconds(60);
    for (const int guilty : {0, 1, 2, 3}) {
        EXPECT_THAT(error_of({2, 2}, limit,
                             [&](MachineSide& side) {
                                 call(side, 1000);
                                 if (side.communicator.rank() == guilty) {
                                     throw std::runtime_error("on purpose");
                                 }
                                 call(side, 1000);
                             }),
                    AnyOf(HasSubstr("on purpose"), HasSubstr("has failed")))
            << guilty;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(MachinesErrors, ARefusedCallIsNotCounted) {
    on_machines({2, 2}, [](MachineSide& side) {
        const CUdeviceptr window = side.allocate(1 << 20);
        const DeviceMemory memory(4000);
        const Stream other;
        const auto call = [&](CUdeviceptr in, CUdeviceptr out, std::size_t count,
                              DataType type = DataType::kFloat) {
            return testing::text_thrown_by([&] {
                side.communicator.all_reduce(in, out, count, type, ReduceOp::kSum, other.get());
            });
        };
        const auto next = [&] { side.reduce_and_check(window, window, 5001); };
        EXPECT_THAT(call(window + 2, window + 2, 3000), HasSubstr("aligned"));
        next();
        EXPECT_THAT(call(window, window, 3000, static_cast<DataType>(77)), HasSubstr("DataType"));
        next();
        EXPECT_THAT(call(window, window + 400, 3000), HasSubstr("overlap"));
        next();
        EXPECT_THAT(call(window, window, std::size_t{1} << 30), HasSubstr("do not fit"));
        EXPECT_THAT(call(window, window, ~std::size_t{0}), HasSubstr("do not fit"));
        EXPECT_THAT(call(memory.address(), memory.address(), 1 << 20), HasSubstr("do not fit"));
        next();
        Graph::capture(other.get(), [&] {
            EXPECT_THAT(call(window, window, 3000), HasSubstr("cannot be captured"));
        });
        next();
    });
}

// A machine's kernel gives up before its part is made: the part must not reach other machines.
TEST(MachinesErrors, WhereOneKernelGivesUpNoRankTakesAWrongResultForRight) {
    for (int round = 0; round < 4; ++round) {
        std::latch called(3);
        const auto body = [&](MachineSide& side) {
            const bool late = side.communicator.rank() == 2;
            const CUdeviceptr window = side.allocate(1 << 16);
            side.verifier.fill(side.stream, {}, window, 1000);
            if (late) {  // aborted while its machine's rank waits
                called.wait();
                side.communicator.inside().abort();
            }
            side.call(window, window, 1000);
            if (!late) {
                called.count_down();
            }
            side.synchronize();
            EXPECT_NO_THROW(side.verifier.check(side.stream, {}, window, 1000));
        };
        EXPECT_THROW(on_machines({2, 2}, body), std::runtime_error);
    }
}

// The other ranks have made the call: what is sent for it must not become the next one's result.
TEST(MachinesErrors, ACallThatOneRankOrMachineRefusesEndsAll) {
    const VariableInForce timeout("SYMM_TIMEOUT", "0.3");
    for (const bool whole_machine : {false, true}) {
        const auto body = [&](MachineSide& side) {
            const CUdeviceptr window = side.allocate(1 << 16);
            const int rank = side.communicator.rank();
            if (rank == 1 || (whole_machine && rank == 0)) {
                EXPECT_THROW(side.call(window + 2, window + 2, 1000), std::invalid_argument);
            }
            side.reduce_and_check(window, window, 1000);
            ADD_FAILURE() << "a call met another one";
        };
        EXPECT_THROW(on_machines({2, 2}, body), std::runtime_error);
    }
}

/// Fails in one of its calls.
class FailingRail final : public Rail {
public:
    FailingRail(std::unique_ptr<Rail> rail, int calls) : rail_(std::move(rail)), calls_(calls) {}

    int machine() const override { return rail_->machine(); }
    int machines() const override { return rail_->machines(); }
    void all_to_all(const std::byte* from, std::byte* to, std::size_t bytes,
                    Deadline deadline) override {
        if (calls_-- == 0) {
            throw std::runtime_error("network card on fire");
        }
        rail_->all_to_all(from, to, bytes, deadline);
    }
    void all_gather(const std::byte* from, std::byte* to, std::size_t bytes,
                    Deadline deadline) override {
        rail_->all_gather(from, to, bytes, deadline);
    }
    void fail(std::string_view text) noexcept override { rail_->fail(text); }

private:
    std::unique_ptr<Rail> rail_;
    int calls_;
};

/// A rank whose call ends without an error has the right result.
void expect_right_or_throw(MachineSide& side) {
    const CUdeviceptr window = side.allocate(1 << 16);
    side.verifier.fill(side.stream, {}, window, 9001);
    side.stream.synchronize("the input", Deadline::standard());
    side.communicator.all_reduce(window, window, 9001, DataType::kFloat, ReduceOp::kSum,
                                 side.stream.get());
    side.synchronize();
    EXPECT_NO_THROW(side.verifier.check(side.stream, {}, window, 9001));
}

// The ranks of the other rails have their parts, but not the failing one's.
TEST(MachinesErrors, WhereOneRailFailsNoRankTakesAWrongResultForRight) {
    for (int round = 0; round < 8; ++round) {
        const int guilty = round % 4;
        const auto limit = Deadline::standard_limit();
        std::atomic<int> ended = 0;
        const auto body = [&](Rank& inside, std::unique_ptr<Rail> rail) {
            const bool is_guilty = rail->machine() * 2 + inside.rank() == guilty;
            if (is_guilty) {
                rail = std::make_unique<FailingRail>(std::move(rail), round / 4);
            }
            MachineSide side(inside, std::move(rail), limit);
            expect_right_or_throw(side);
            ended += is_guilty ? 1 : 0;  // the others may have all that they need already
            inside.bootstrap().barrier("done");
        };
        EXPECT_THAT([&] { run_on_nodes(2, 2, body); },
                    // The second one is how another rank of that machine fails its rail, then.
                    ::testing::ThrowsMessage<std::runtime_error>(
                        AnyOf(HasSubstr("network card on fire"),
                              HasSubstr("gave up before it had made its part"))))
            << round;
        EXPECT_EQ(ended, 0) << round;
    }
}

// Each rank keeps its error and its objects: no rank hears anything from an exception that leaves
// the body, or from a destructor.
TEST(MachinesErrors, OfOneRailReachAllRanksAtOnceWithTheReason) {
    const Shape shape{2, 3};
    const int ranks = shape.machines * shape.ranks;
    struct Fault {
        int rank;
        int calls;  // of the rail that succeed before
    };
    for (const Fault& fault : {Fault{0, 0}, Fault{4, 0}, Fault{2, 5}}) {
        const auto start = std::chrono::steady_clock::now();
        std::latch ended(ranks);
        const auto body = [&](Rank& inside, std::unique_ptr<Rail> rail) {
            if (rail->machine() * shape.ranks + inside.rank() == fault.rank) {
                rail = std::make_unique<FailingRail>(std::move(rail), fault.calls);
            }
            MachineSide side(inside, std::move(rail), std::chrono::seconds(25));
            const CUdeviceptr window = side.allocate(1 << 16);
            const std::string told = testing::text_thrown_by([&] {
                for (int call = 0; call < 20; ++call) {
                    side.call(window, window, 9001);
                    side.synchronize();
                }
            });
            EXPECT_THAT(told, HasSubstr("network card on fire"))
                << "rank " << side.communicator.rank() << ", failure of rank " << fault.rank;
            ended.arrive_and_wait();
        };
        EXPECT_NO_THROW(run_on_nodes(shape.machines, shape.ranks, body));
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    }
}

TEST(MachinesErrors, WhereLimitsPassNoRankTakesAWrongResultForRight) {
    for (int round = 0; round < 6; ++round) {
        error_of({3, 3}, std::chrono::microseconds(300 << round), expect_right_or_throw);
    }
}

}  // namespace
}  // namespace symm
