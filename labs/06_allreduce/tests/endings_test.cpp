// How a program ends whose rank, communicator, stream and graph have static storage, or are never
// destroyed. It ends soon, without a crash, and its peer is told. No wait has a limit.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/cuda/graph.hpp"
#include "common/tests/running.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"

namespace symm {
namespace {

using namespace testing;

constexpr std::size_t kCount = 1001;

struct Objects {
    explicit Objects(int number, const std::string& name)
        : rank(join(number, 2, name), RankMode::kProcess),
          communicator(rank),
          buffer(communicator.allocate(kCount * sizeof(float))),
          graph(Graph::capture(stream.get(), [&] { call(); })) {}
    void call() {
        communicator.all_reduce(buffer, buffer, kCount, DataType::kFloat, ReduceOp::kMax,
                                stream.get());
    }
    void synchronize() { communicator.synchronize(stream, "the call"); }

    Rank rank;
    Communicator communicator;
    Stream stream;
    CUdeviceptr buffer;
    Graph graph;
};

std::unique_ptr<Objects> early;  // destroyed after the library's own static objects

void stay() {
    while (true) {
        ::pause();
    }
}

struct Ending {
    void (*end)(Objects&);
    int code;  ///< The exit code, or minus a signal.
};
const std::map<std::string, Ending> kEndings{
    {"returns", {[](Objects&) {}, 0}},
    {"exits", {[](Objects&) { std::exit(3); }, 3}},
    {"exits_quickly", {[](Objects&) { std::quick_exit(3); }, 3}},
    {"exits_at_once", {[](Objects&) { ::_exit(3); }, 3}},
    {"exits_in_a_thread",
     {[](Objects&) {
          std::thread([] { std::exit(3); }).detach();
          stay();
      },
      3}},
    {"aborts_its_calls",
     {[](Objects& mine) {
          mine.call();  // the peer does not make it
          mine.communicator.abort();
          std::exit(3);
      },
      3}},
    {"throws_in_a_thread",
     {[](Objects&) {
          std::thread([] { throw std::runtime_error("on purpose"); }).detach();
          stay();
      },
      -SIGABRT}},
};

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

// A rank of the test below.
TEST(ProgramEnds, DISABLED_Rank) {
    const int number = std::stoi(variable("SYMM_TEST_RANK"));
    const std::string storage = variable("SYMM_TEST_STORAGE");
    auto made = std::make_unique<Objects>(number, variable("SYMM_TEST_NAME"));
    Objects& mine = *made;
    if (number == 0) {
        mine.call();
        mine.graph.launch(mine.stream.get());
        mine.synchronize();
        mine.call();  // rank 1 ends instead
        const std::string told = text_thrown_by([&] { mine.synchronize(); });
        EXPECT_THAT(told, ::testing::HasSubstr("rank 1 (pid"));
        return;
    }
    if (storage == "early") {
        early = std::move(made);
    } else if (storage == "late") {
        static const auto late = std::move(made);
    } else {
        static_cast<void>(made.release());  // never destroyed
    }
    mine.call();
    mine.graph.launch(mine.stream.get());
    if (variable("SYMM_TEST_CALLS") == "0") {
        mine.synchronize();
    }
    kEndings.at(variable("SYMM_TEST_WAY")).end(mine);
}

// Calls in flight, which objects with static storage wait for. Otherwise they are lost.
bool may_end_with_calls(const std::string& way, const std::string& storage) {
    return storage != "none" && (way == "returns" || way == "exits" || way == "exits_in_a_thread");
}

TEST(ProgramEnds, WhateverIsNotDestroyed) {
    struct Run {
        std::string what;
        int code;
        std::unique_ptr<Running> ranks[2];
    };
    std::vector<Run> runs;  // at the same time: a peer is told of an end after some seconds
    for (const auto& [way, ending] : kEndings) {
        for (const std::string storage : {"early", "late", "none"}) {
            for (const std::string calls : {"0", "1"}) {
                if (calls == "1" && !may_end_with_calls(way, storage)) {
                    continue;
                }
                Run run{
                    way + ", storage " + storage + ", calls in flight " + calls, ending.code, {}};
                for (const int rank : {0, 1}) {
                    run.ranks[rank] = std::make_unique<Running>(
                        std::vector<std::string>{own_arguments().at(0),
                                                 "--gtest_also_run_disabled_tests",
                                                 "--gtest_filter=ProgramEnds.DISABLED_Rank"},
                        std::vector<std::string>{
                            "ASAN_OPTIONS=detect_leaks=0",  // of what is not destroyed
                            fmt::format("SYMM_TEST_RANK={}", rank), "SYMM_TEST_STORAGE=" + storage,
                            "SYMM_TEST_CALLS=" + calls, "SYMM_TEST_WAY=" + way,
                            fmt::format("SYMM_TEST_NAME=ends {} {}", ::getpid(), runs.size())});
                }
                runs.push_back(std::move(run));
            }
        }
    }
    for (const Run& run : runs) {
        const ExitStatus end = run.ranks[1]->end();
        EXPECT_EQ(end.signal != 0 ? -end.signal : end.code, run.code)
            << run.what << "\n"
            << run.ranks[1]->output() << run.ranks[1]->errors();
        EXPECT_EQ(run.ranks[0]->end().code, 0) << run.what << "\n"
                                               << run.ranks[0]->output() << run.ranks[0]->errors();
    }
}

}  // namespace
}  // namespace symm
