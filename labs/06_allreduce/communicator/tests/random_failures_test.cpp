// Calls through the slots that algorithms share, of which some fail at random
// moments: a rank is late, stops calling, or aborts. A rank that was told nothing has right
// results, and no rank's memory changes but for the outputs of its own calls. For 1,000 rounds:
// 06_allreduce_test --gtest_filter=RandomFailures.* --gtest_shuffle --gtest_repeat=100

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/stream.hpp"
#include "common/tests/sanitized.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 3;
constexpr std::size_t kCalls = 6;
constexpr std::size_t kRoom = 8192;  // floats: of each call's output, with untouched ones around it
constexpr std::size_t kGuard = 64;
constexpr float kPoison = -7;

float input_of(int rank, std::size_t call, std::size_t i) {
    return static_cast<float>(1 + static_cast<std::size_t>(rank) + 5 * call + i % 1009 * 7);
}

float sum_of(std::size_t call, std::size_t i) {
    float sum = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
        sum += input_of(rank, call, i);
    }
    return sum;
}

/// What happens in a round: the same on all ranks.
struct Round {
    int faulty;        ///< The rank that does it.
    int what;          ///< 0: it is late, 1: it stops calling, 2: it aborts.
    std::size_t when;  ///< Before this call.
    std::chrono::microseconds delay;
    std::chrono::milliseconds limit;  ///< No wait in a kernel is longer.
    bool one_by_one;                  ///< Each call is awaited before the next.
    std::array<Algorithm, kCalls> algorithm;
    std::array<std::size_t, kCalls> count;

    explicit Round(std::mt19937& random) {
        const auto below = [&](std::size_t limit) {
            return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
        };
        faulty = static_cast<int>(below(kRanks));
        what = static_cast<int>(below(3));
        when = below(kCalls);
        limit = std::chrono::milliseconds(20 + below(30));
        delay = std::chrono::microseconds(below(what == 0 ? 80'000 : 3'000));
        // Copies of calls that follow a failed one may race, by design, with a peer that has to be
        // told: ThreadSanitizer would see it.
        one_by_one = below(2) == 0 || testing::kSanitized;
        for (std::size_t call = 0; call < kCalls; ++call) {
            algorithm.at(call) =
                has_copy(kRanks) && below(4) != 0 ? Algorithm::kCopy : Algorithm::kChunks;
            count.at(call) = 1 + below(kRoom - 2 * kGuard);
        }
    }
};

/// Compares a call's output of `count` elements: `made` says whether it must be there, or only
/// nothing around it.
void check_output(std::span<const float> out, std::size_t call, std::size_t count, bool made) {
    for (std::size_t i = 0; i < kRoom; ++i) {
        if (i < kGuard || i >= kGuard + count) {
            ASSERT_EQ(out[i], kPoison) << "call " << call << " wrote beside its output: " << i;
        } else if (made) {
            ASSERT_EQ(out[i], sum_of(call, i - kGuard)) << "call " << call << " succeeded: " << i;
        }
    }
}

void run_round(Rank& rank, const Round& round) {
    Communicator communicator(rank, {.limit = round.limit});
    const CUdeviceptr from = communicator.allocate(kCalls * kRoom * sizeof(float));
    const CUdeviceptr to = communicator.allocate(kCalls * kRoom * sizeof(float));
    const Stream stream;
    bool failed = false;
    try {  // an algorithm's first call may wait for all ranks on the host
        // Each has an output of its own: after a failed kernel, the copies queued behind it still
        // run, and would race with a peer's kernel.
        CUdeviceptr out = to;
        for (const Algorithm algorithm : {Algorithm::kChunks, Algorithm::kCopy}) {
            if (algorithm != Algorithm::kCopy || has_copy(kRanks)) {
                communicator.all_reduce(from, out, 1, DataType::kFloat, ReduceOp::kSum,
                                        stream.get(), algorithm);
                out += sizeof(float);
            }
        }
        communicator.synchronize(stream, "the first call");
    } catch (const std::runtime_error&) {  // on a busy machine, the limit may pass
        failed = true;
    }
    rank.bootstrap().barrier("the first call has ended on all ranks");
    std::vector<float> values(kCalls * kRoom);
    for (std::size_t call = 0; call < kCalls; ++call) {
        for (std::size_t i = 0; i < kRoom; ++i) {
            values[call * kRoom + i] = input_of(rank.rank(), call, i - kGuard);
        }
    }
    copy_to_device(from, values.data(), values.size() * sizeof(float));
    copy_to_device(to, std::vector<float>(values.size(), kPoison).data(),
                   values.size() * sizeof(float));
    rank.bootstrap().barrier("ready");
    const bool faulty = rank.rank() == round.faulty;
    std::jthread other;
    std::size_t made = 0;
    try {
        for (; made < kCalls; ++made) {
            if (faulty && made == round.when) {
                if (round.what == 1) {
                    break;
                }
                if (round.what == 2) {
                    other = std::jthread([&] {
                        std::this_thread::sleep_for(round.delay);
                        communicator.abort();
                    });
                } else {
                    std::this_thread::sleep_for(round.delay);
                }
            }
            const std::size_t begin = (made * kRoom + kGuard) * sizeof(float);
            communicator.all_reduce(from + begin, to + begin, round.count.at(made),
                                    DataType::kFloat, ReduceOp::kSum, stream.get(),
                                    round.algorithm.at(made));
            if (round.one_by_one) {
                communicator.synchronize(stream, "a call");
            }
        }
        communicator.synchronize(stream, "the calls");
    } catch (const std::runtime_error&) {
        failed = true;
    }
    if (other.joinable()) {
        other.join();
    }
    rank.bootstrap().barrier("all have ended");  // a failed rank's peers may still store into it
    std::vector<float> out(values.size());
    copy_to_host(out.data(), to, out.size() * sizeof(float));
    for (std::size_t call = 0; call < kCalls; ++call) {
        check_output(std::span(out).subspan(call * kRoom, kRoom), call,
                     call > made ? 0 : round.count.at(call),
                     call < made && (!failed || round.one_by_one));
    }
    rank.bootstrap().barrier("checked");
}

TEST(RandomFailures, LeaveNoWrongResult) {
    std::mt19937 random(static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed()));
    for (int i = 0; i < 10; ++i) {
        const Round round(random);
        SCOPED_TRACE(fmt::format("round {}: rank {} {} {} us before call {}, limit {} ms", i,
                                 round.faulty,
                                 std::array{"is late by", "stops calling", "aborts after"}.at(
                                     static_cast<std::size_t>(round.what)),
                                 round.delay.count(), round.when, round.limit.count()));
        run_ranks({kRanks, RankMode::kThread, {}}, [&](Rank& rank) { run_round(rank, round); });
    }
}

}  // namespace
}  // namespace symm
