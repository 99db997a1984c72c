// The AllReduce with few stores, of more ranks than can be explored. Threads of the host are ranks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <thread>
#include <vector>

#include "labs/06_allreduce/few_stores/few_stores.hpp"
#include "tools/explore/unguessable.hpp"

namespace symm {
namespace {

struct Guarded {
    SumMemory memory;
    unsigned char after[256];  // that is no memory of the calls
};

class Sum : public ::testing::TestWithParam<int> {};

TEST_P(Sum, StaysInItsMemory) {
    constexpr unsigned char kGuard = 0xa5;
    const int ranks = GetParam();
    std::vector<Guarded> all(ranks);
    for (Guarded& one : all) {
        one.memory = {};
        std::fill(std::begin(one.after), std::end(one.after), kGuard);
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            std::uint32_t gave_up = 0;
            simt::WaitReport report{};
            const simt::Timeout timeout{&gave_up, &report, 5'000'000'000};
            simt::Waiter waiter(timeout);  // which refers to it
            for (std::uint32_t call = 1; call <= 5; ++call) {
                alignas(16) std::uint32_t data[8];
                std::uint32_t expected[8] = {};
                for (std::uint32_t i = 0; i < 8; ++i) {
                    data[i] = explore::unguessable(rank, 8 * call + i);
                    for (int p = 0; p < ranks; ++p) {
                        expected[i] += explore::unguessable(p, 8 * call + i);
                    }
                }
                ASSERT_TRUE(
                    sum({&all[0].memory, sizeof(Guarded)}, rank, ranks, call, data, 8, waiter))
                    << "call " << call << " of " << ranks << " ranks: rank " << rank
                    << " has waited for rank " << report.waiting.peer;
                for (std::uint32_t i = 0; i < 8; ++i) {
                    ASSERT_EQ(data[i], expected[i])
                        << "call " << call << " of " << ranks << " ranks: rank " << rank
                        << " has a wrong sum of element " << i;
                }
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_TRUE(std::ranges::all_of(all[rank].after, [](auto byte) { return byte == kGuard; }))
            << "something was written behind the memory of rank " << rank << " of " << ranks;
    }
}

INSTANTIATE_TEST_SUITE_P(Of, Sum, ::testing::Values(4, 5, 8),
                         [](const auto& info) { return std::to_string(info.param) + "Ranks"; });

}  // namespace
}  // namespace symm
