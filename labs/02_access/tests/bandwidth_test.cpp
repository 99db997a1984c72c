// Simultaneous transfers, and their table.

#include "labs/02_access/bandwidth.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "labs/02_access/tests/access_lab_test.hpp"

namespace symm {
namespace {

using testing::ContainsRegex;

constexpr std::size_t kBytes = 20'016;

class Transfers : public AccessLabTest {
protected:
    PeerMatrix matrix_ = PeerMatrix::query();
};

TEST_F(Transfers, ThatAreImpossibleAreLeftOut) {
    SYMM_NEEDS(has_peers());
    const Pair pair = matrix_.usable_pairs().front();
    const Route transfer{pair.accessor, pair.owner};
    const Route back{pair.owner, pair.accessor};
    TransferBench bench(gpus(), matrix_, kBytes);
    EXPECT_FALSE(bench.run(Method::kStores, std::array{Route{0, 0}}, 1));
    matrix_.exclude(pair, "for this test");
    EXPECT_FALSE(bench.run(Method::kStores, std::array{transfer}, 1));
    EXPECT_FALSE(bench.run(Method::kLoads, std::array{back}, 1))
        << "loads go in the opposite direction to the data";
    EXPECT_TRUE(bench.run(Method::kLoads, std::array{transfer}, 1));
    EXPECT_TRUE(bench.run(Method::kLoads, std::array{transfer, back}, 1));
}

TEST_F(Transfers, GoOnAfterOneThatFailed) {
    SYMM_NEEDS(has_peers());
    SYMM_NEEDS(is_emulated());
    const Pair pair = matrix_.usable_pairs().front();
    TransferBench bench(gpus(), matrix_, kBytes);
    const std::array transfers{Route{pair.accessor, pair.owner}};
    emu::fail_call("cuMemcpyAsync", 2, CUDA_ERROR_UNKNOWN);  // after the warm-up, behind the gate
    EXPECT_THROW(bench.run(Method::kCopyEngine, transfers, 2), CudaError);
    EXPECT_TRUE(bench.run(Method::kCopyEngine, transfers, 2));
}

TEST_F(Transfers, FillEveryLineOfTheTable) {
    const std::string table = measure_links(gpus(), matrix_, kBytes, 1);
    const auto lines = static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n'));
    const std::size_t devices = gpus().size();
    EXPECT_EQ(lines, 2 + devices * devices + devices - 1) << table;
    EXPECT_THAT(table, ContainsRegex("\n0 +0 +- +- +- +- +[0-9]+\n"));
    if (!matrix_.usable_pairs().empty()) {
        EXPECT_THAT(table, ContainsRegex("\neach +i \\+ 1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+\n"));
    }
}

TEST_F(Transfers, LeaveOutWhatIsExcluded) {
    SYMM_NEEDS(has_peers());
    const Pair pair = matrix_.usable_pairs().front();
    matrix_.exclude(pair, "for this test");
    const std::string table = measure_links(gpus(), matrix_, kBytes, 1);
    const auto line = [](int from, int to, const char* cells) {
        return ContainsRegex(fmt::format("\n{} +{} {}\n", from, to, cells));
    };
    // The accessor's stores and pushes are left out, and its loads and pulls of the owner's data.
    EXPECT_THAT(table, line(pair.accessor, pair.owner, "+[0-9.]+ +- +- +[0-9.]+ +[0-9]+"));
    EXPECT_THAT(table, line(pair.owner, pair.accessor, "+- +[0-9.]+ +[0-9.]+ +- +-"));
}

}  // namespace
}  // namespace symm
