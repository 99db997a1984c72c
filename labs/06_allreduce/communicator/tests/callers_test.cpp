// What a caller may do: any thread, any current context, default streams, static storage, memory
// that comes and goes; and ranks whose environments differ.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/cuda/check.hpp"
#include "common/cuda/graph.hpp"
#include "common/emu/faults.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kCount = 1000;

CUcontext current_context() {
    CUcontext context = nullptr;
    cu_check(cuCtxGetCurrent(&context), "cuCtxGetCurrent()");
    return context;
}

// Threads without a context, and with the context of another device.
TEST(Callers, MayUseAnyThreadAndContext) {
    run_ranks({2, RankMode::kThread, {}}, [](Rank& rank) {
        const Device other((rank.device() + 1) % device_count());
        for (const CUcontext callers : {CUcontext{}, other.context()}) {
            rank.gpu().make_current();
            const Stream stream;
            Verifier verifier(rank.rank(), rank.size());
            std::unique_ptr<Communicator> communicator;
            CUdeviceptr window = 0;
            const auto as_caller = [&](const auto& use) {
                std::thread([&] {
                    cu_check(cuCtxSetCurrent(callers), "cuCtxSetCurrent()");
                    use();
                    EXPECT_EQ(current_context(), callers);
                }).join();
            };
            as_caller([&] {
                communicator =
                    std::make_unique<Communicator>(rank, CommunicatorOptions{.max_blocks = 1});
                window = communicator->allocate(kCount * sizeof(float));
            });
            for (const Algorithm algorithm : algorithms_of(2)) {
                verifier.fill(stream, {}, window, kCount);
                as_caller([&] {
                    communicator->all_reduce(window, window, kCount, DataType::kFloat,
                                             ReduceOp::kSum, stream.get(), algorithm);
                    communicator->synchronize(stream, "the call");
                });
                verifier.check(stream, {}, window, kCount);
            }
            for (int call = 0; call < 20; ++call) {  // in flight when it is destroyed
                communicator->all_reduce(window, window, kCount, DataType::kFloat, ReduceOp::kMax,
                                         stream.get());
            }
            as_caller([&] { communicator.reset(); });
            EXPECT_NO_THROW(stream.synchronize());
            rank.bootstrap().barrier("done");
        }
    });
}

// The threads take turns on the host, but CU_STREAM_PER_THREAD is a stream of its own for each.
TEST(Callers, OrderCallsInTheDefaultStreamsOfThreads) {
    on_ranks(2, [](Side& side) {
        constexpr std::size_t kCalls = 12;
        const auto count_of = [](std::size_t call) { return call % 2 == 0 ? kCount * 10 : kCount; };
        std::vector<Verifier> verifiers;
        std::vector<CUdeviceptr> windows;
        for (std::size_t i = 0; i < kCalls; ++i) {
            verifiers.emplace_back(side.rank.rank(), side.rank.size());
            windows.push_back(side.allocate(count_of(i) * sizeof(float)));
            verifiers[i].fill(side.stream, {}, windows[i], count_of(i));
        }
        side.stream.synchronize();
        std::barrier turn(2);
        const auto make_calls = [&](std::size_t thread) {
            side.rank.gpu().make_current();
            // Its first work could have to wait for a kernel that waits for another rank.
            cu_check(cuMemsetD8Async(windows[thread], 0, 0, CU_STREAM_PER_THREAD), "cuMemset()");
            cu_check(cuStreamSynchronize(CU_STREAM_PER_THREAD), "cuStreamSynchronize()");
            turn.arrive_and_wait();
            if (thread == 0) {
                side.rank.bootstrap().barrier("streams exist");
            }
            turn.arrive_and_wait();
            for (std::size_t i = 0; i < kCalls; ++i) {
                if (i / 2 % 2 == thread) {
                    side.communicator.all_reduce(
                        windows[i], windows[i], count_of(i), DataType::kFloat, ReduceOp::kSum,
                        CU_STREAM_PER_THREAD, i % 3 == 0 ? Algorithm::kTwoShot : Algorithm::kAuto);
                }
                turn.arrive_and_wait();
            }
        };
        std::thread other(make_calls, 1);
        make_calls(0);
        other.join();
        cu_check(cuCtxSynchronize(), "cuCtxSynchronize()");
        EXPECT_EQ(side.communicator.async_error(), "");
        for (std::size_t i = 0; i < kCalls; ++i) {
            verifiers[i].check(side.stream, {}, windows[i], count_of(i));
        }
    });
}

// Another rank captures in mode global while this one waits.
TEST(Callers, MayCaptureInModeGlobalWhileAnotherRankWaits) {
    on_ranks(2, [](Side& side) {
        const CUdeviceptr window = side.allocate(kCount * sizeof(float));
        side.rank.bootstrap().barrier("start");
        if (side.rank.rank() == 1) {
            side.call(window, window, kCount, {}, Algorithm::kOneShot);
            side.communicator.synchronize(side.stream, "the captured call");
            return;
        }
        cu_check(cuStreamBeginCapture(side.stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL),
                 "cuStreamBeginCapture()");
        side.call(window, window, kCount, {}, Algorithm::kOneShot);
        std::this_thread::sleep_for(50ms);  // rank 1 polls some hundred times
        CUgraph graph = nullptr;
        CUgraphExec executable = nullptr;
        cu_check(cuStreamEndCapture(side.stream.get(), &graph), "cuStreamEndCapture()");
        cu_check(cuGraphInstantiate(&executable, graph, 0), "cuGraphInstantiate()");
        cu_check(cuGraphLaunch(executable, side.stream.get()), "cuGraphLaunch()");
        side.communicator.synchronize(side.stream, "the captured call");
        cu_check(cuGraphExecDestroy(executable), "cuGraphExecDestroy()");
        cu_check(cuGraphDestroy(graph), "cuGraphDestroy()");
    });
}

std::unique_ptr<Rank> kept_rank;
std::unique_ptr<Communicator> kept_communicator;

// Destroyed after the library's own objects of static storage.
TEST(CallersDeathTest, MayKeepACommunicatorUntilTheProgramEnds) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            kept_rank = std::make_unique<Rank>(
                std::make_unique<SocketBootstrap>(0, 1, std::move(connected_sockets(1)[0])),
                RankMode::kProcess);
            kept_communicator = std::make_unique<Communicator>(*kept_rank);
            kept_communicator->allocate(4096);
            std::exit(8);
        },
        ::testing::ExitedWithCode(8), "");
}

// The caller frees registered memory, and gets new memory at the same address.
TEST(Callers, AreToldOfNewMemoryAtARegisteredAddress) {
    const VariableInForce check("SYMM_CHECK", "1");
    on_ranks(2, [](Side& side) {
        const CUmemAllocationProp properties = device_memory(side.rank.device());
        const std::size_t bytes = granularity(properties);
        const AddressRange range(bytes);
        const int device = side.rank.device();
        const auto memory = [&] {
            Mapping mapping(range.base(), bytes, PhysicalMemory::create(properties, bytes));
            allow(range.base(), bytes, {&device, 1});
            return mapping;
        };
        const auto call = [&] {
            side.reduce_and_check(range.base(), range.base(), kCount, {}, Algorithm::kTwoShot);
        };
        Mapping mapping = memory();
        const CUdeviceptr window = side.communicator.register_memory(range.base(), bytes);
        call();
        if (side.rank.rank() == 1) {
            mapping.close();
            mapping = memory();
        }
        EXPECT_THAT(text_thrown_by(call), HasSubstr("is not the memory that was registered there"));
        EXPECT_THAT(text_thrown_by([&] { side.communicator.register_memory(range.base(), bytes); }),
                    HasSubstr("is not the memory that was registered there"));
        side.communicator.release(window);
        side.communicator.register_memory(range.base(), bytes);
        call();
    });
}

// A rank's own variables would make it do something else than the other ranks.
TEST(Callers, UseTheVariablesOfRankZero) {
    run_as(RankMode::kProcess, 2, [](Rank& rank) {
        if (rank.rank() == 1) {
            ::setenv("SYMM_ALGO", "twoshot", 1);
            ::setenv("SYMM_BLOCKS", "1", 1);
            ::setenv("SYMM_THREADS", "32", 1);
            ::setenv("SYMM_MAX_BLOCKS", "1", 1);
            ::setenv("SYMM_CHECK", "1", 1);
        }
        Side side(rank);
        const CUdeviceptr window = side.allocate(1 << 16);
        const CallPlan plan =
            side.reduce_and_check(window, window, 10 * kCount, {}, Algorithm::kAuto);
        for (const CallPlan& other : rank.bootstrap().allgather("plan", plan)) {
            EXPECT_EQ(other.algorithm, plan.algorithm);
            EXPECT_EQ(other.shape.blocks, plan.shape.blocks);
            EXPECT_EQ(other.piece, plan.piece);
        }
        rank.bootstrap().barrier("done");
    });
}

// A rank that has made all its calls may end, long before the others.
TEST(Callers, MayEndWhenTheirCallsAreDone) {
    run_ranks({2, RankMode::kThread, {}}, [](Rank& rank) {
        Side side(rank, {});
        const CUdeviceptr window = side.allocate(4096);
        side.call(window, window, kCount);
        side.synchronize();
        const auto start = std::chrono::steady_clock::now();
        while (rank.rank() == 1 &&
               std::chrono::steady_clock::now() - start < 4s) {  // rank 0 counts as gone after 3
            side.communicator.synchronize(side.stream, "work of this rank alone", [] {});
            std::this_thread::sleep_for(20ms);
        }
    });
}

// This rank waits for its stream by itself, so only the communicator's own thread can notice.
TEST(Callers, NeedNotLookForARankThatIsGone) {
    const auto start = std::chrono::steady_clock::now();
    const Moment noticed;
    error_of(ranks_of_this_test(3, RankMode::kProcess), [&](Rank& rank) {
        Side side(rank, {.limit = 60s});
        constexpr std::size_t kMany = 1 << 20;  // the others wait for their turns
        const CUdeviceptr window = side.allocate(kMany * sizeof(float));
        side.call(window, window, kMany, {}, Algorithm::kChunks);
        side.synchronize();
        if (rank.rank() == 1) {
            ::raise(SIGKILL);
        }
        side.call(window, window, kMany, {}, Algorithm::kChunks);
        side.stream.synchronize("a sum that cannot be", Deadline::after(20s));
        if (side.communicator.async_error().find("rank 1") != std::string::npos) {
            noticed.set();
        }
    });
    if (!is_rank_process()) {
        EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
        EXPECT_LT(noticed.passed(), 15s);  // fails if no rank noticed
    }
}

// Driver calls by which a communicator takes what only its own rank uses: each fails once, on one
// of two ranks. The other one does not wait for it.
TEST(Callers, GetTheErrorOfAnotherRanksConstruction) {
    SYMM_NEEDS(is_emulated());
    const RankOptions two_threads{2, RankMode::kThread, {}};
    for (const std::string function :
         {"cuMemAlloc", "cuMemHostAlloc", "cuMemsetD8Async", "cuEventCreate"}) {
        const auto construct = [&](Rank& rank, bool fails) {
            rank.bootstrap().barrier("before");
            if (fails && rank.rank() == 0) {
                emu::fail_call(function, 1, CUDA_ERROR_OUT_OF_MEMORY);
            }
            rank.bootstrap().barrier("armed");
            const Communicator communicator(rank);
            rank.bootstrap().barrier("made");
        };
        const long before = emu::calls_made(function);
        run_ranks(two_threads, [&](Rank& rank) { construct(rank, false); });
        EXPECT_GT(emu::calls_made(function), before) << function;
        const auto start = std::chrono::steady_clock::now();
        const std::string error = error_of(two_threads, [&](Rank& rank) { construct(rank, true); });
        EXPECT_THAT(error, AllOf(HasSubstr(function), HasSubstr("OUT_OF_MEMORY")));
        EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
        emu::clear_failures();
    }
}

}  // namespace
}  // namespace symm
