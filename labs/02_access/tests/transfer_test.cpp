// Transfers at once, and the table made of them.

#include "labs/02_access/transfer.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "labs/02_access/bandwidth.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"

namespace symm {
namespace {

constexpr std::size_t kBytes = 20'016;

class Transfers : public AccessLabTest {
protected:
    PeerMatrix matrix_ = PeerMatrix::query();
};

TEST_F(Transfers, ArriveByEveryMethodInBothDirections) {
    SYMM_NEED_PEERS();
    const Pair pair = matrix_.usable_pairs().back();
    TransferBench bench(gpus(), matrix_, kBytes);
    const Transfer there{pair.accessor, pair.owner};
    const Transfer back{pair.owner, pair.accessor};
    for (const Method method : kMethods) {
        EXPECT_EQ(bench.run(method, std::array{there}, 1).size(), 1u);
        EXPECT_EQ(bench.run(method, std::array{there, back}, 3).size(), 2u);
    }
}

TEST_F(Transfers, ThatAreImpossibleAreRefused) {
    SYMM_NEED_PEERS();
    const Pair pair = matrix_.usable_pairs().front();
    const Transfer transfer{pair.accessor, pair.owner};
    const Transfer back{pair.owner, pair.accessor};
    TransferBench bench(gpus(), matrix_, kBytes);
    EXPECT_THROW(bench.run(Method::kStores, std::array{Transfer{0, 0}}, 1), std::invalid_argument);
    matrix_.exclude(pair, "for this test");
    EXPECT_THROW(bench.run(Method::kStores, std::array{transfer}, 1), std::invalid_argument);
    EXPECT_THROW(bench.run(Method::kLoads, std::array{back}, 1), std::invalid_argument)
        << "loads go the other way than the data";
    EXPECT_EQ(bench.run(Method::kLoads, std::array{transfer}, 1).size(), 1u);
}

TEST_F(Transfers, GoOnAfterOneThatFailed) {
    SYMM_NEED_PEERS();
    if (!is_emulated()) {
        GTEST_SKIP() << "only the emulated driver fails on demand";
    }
    const Pair pair = matrix_.usable_pairs().front();
    TransferBench bench(gpus(), matrix_, kBytes);
    const std::array transfers{Transfer{pair.accessor, pair.owner}};
    emu::fail_call("cuMemcpyAsync", 2, CUDA_ERROR_UNKNOWN);  // after the warm-up, behind the gate
    EXPECT_THROW(bench.run(Method::kCopyEngine, transfers, 2), CudaError);
    EXPECT_EQ(bench.run(Method::kCopyEngine, transfers, 2).size(), 1u);
}

TEST_F(Transfers, FillEveryLineOfTheTable) {
    const std::vector<LinkSpeed> speeds = measure_links(gpus(), matrix_, kBytes, 1);
    const std::size_t devices = gpus().size();
    ASSERT_EQ(speeds.size(), devices * devices + devices - 1);
    for (const LinkSpeed& speed : speeds) {
        const bool own = speed.from == speed.to;
        const bool at_once = speed.from == "each";
        for (const auto& rate : speed.gb_per_s) {
            EXPECT_EQ(rate.has_value(), !own && !matrix_.usable_pairs().empty())
                << speed.from << " " << speed.to;
        }
        if (own || at_once) {
            EXPECT_EQ(speed.latency_ns.has_value(), own);
        }
    }
}

TEST_F(Transfers, LeaveOutWhatIsExcluded) {
    SYMM_NEED_PEERS();
    const Pair pair = matrix_.usable_pairs().front();
    matrix_.exclude(pair, "for this test");
    for (const LinkSpeed& speed : measure_links(gpus(), matrix_, kBytes, 1)) {
        if (speed.from == std::to_string(pair.accessor) && speed.to == std::to_string(pair.owner)) {
            EXPECT_TRUE(speed.gb_per_s[0]) << "loads of the other device";
            EXPECT_FALSE(speed.gb_per_s[1]);
            EXPECT_FALSE(speed.gb_per_s[2]);
        }
        if (speed.from == std::to_string(pair.owner) && speed.to == std::to_string(pair.accessor)) {
            EXPECT_FALSE(speed.gb_per_s[0]) << "loads of this device";
            EXPECT_TRUE(speed.gb_per_s[1]);
            EXPECT_FALSE(speed.latency_ns);
        }
    }
}

TEST(LinkTable, ShowsEveryCell) {
    const std::array speeds{LinkSpeed{"0", "0", {}, 146.4},
                            LinkSpeed{"0", "1", {374.11, 370.0, std::nullopt}, 855.0}};
    EXPECT_EQ(table_of(speeds),
              "from  to  loads GB/s  stores GB/s  copy engine GB/s  latency ns\n"
              "---------------------------------------------------------------\n"
              "0      0           -            -                 -         146\n"
              "0      1       374.1        370.0                 -         855\n");
}

}  // namespace
}  // namespace symm
