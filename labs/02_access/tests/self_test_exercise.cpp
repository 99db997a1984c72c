// The self-test of a pair, on a machine that loses something between some pairs:
// SYMM_EMU_DEVICES=6 SYMM_EMU_LOSSY=1:0:stores,2:0:loads,3:0:copies.

#include <fmt/ranges.h>

#include <set>
#include <string>

#include "common/test_pattern/test_pattern.hpp"
#include "labs/02_access/peer_check.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"
#include "labs/02_access/tests/watch.hpp"

namespace symm {
namespace {

class SelfTest : public AccessLabTest {
protected:
    // The failure's text, without the words that were seen.
    static std::string failure(int accessor, int owner) {
        const std::string text = check_pair(gpu(accessor), gpu(owner), 40'004);
        return text.substr(0, text.find(':'));
    }
    // The devices that compare, in this order.
    static std::vector<int> comparers(int accessor, int owner) {
        std::vector<int> devices;
        const Watch watch(gpus(), [&](const Work& work) {
            if (work.what == "symm::test_pattern::Compare") {
                devices.push_back(work.device);
            }
        });
        failure(accessor, owner);
        return devices;
    }
};

TEST_F(SelfTest, PassesAPairThatLosesNothing) {
    for (int round = 0; round < 5; ++round) {
        EXPECT_EQ(failure(5, 4), "");
        EXPECT_EQ(failure(4, 5), "");
    }
}

TEST_F(SelfTest, FindsLostStores) {
    ASSERT_EQ(failure(1, 0), "stores of a kernel are lost");
    EXPECT_EQ(comparers(1, 0).front(), 0) << "device 1 compared its own stores";
}

TEST_F(SelfTest, FindsWrongLoads) {
    ASSERT_EQ(failure(2, 0), "loads of a kernel return wrong data");
    EXPECT_THAT(comparers(2, 0), ::testing::Contains(2))
        << "device 0 compared what device 2 should load";
}

TEST_F(SelfTest, FindsLostCopies) {
    ASSERT_EQ(failure(3, 0), "copies are lost");
    EXPECT_EQ(comparers(3, 0).back(), 0) << "device 3 compared its own copies";
}

TEST_F(SelfTest, BlamesOneDirectionOnly) {
    EXPECT_EQ(failure(0, 1), "");
    EXPECT_EQ(failure(0, 2), "");
    EXPECT_EQ(failure(0, 3), "");
}

TEST_F(SelfTest, ThrowsWhereADriverCallFails) {
    for (const CallOfPath& call : calls_of([] { failure(5, 4); })) {
        if (call.function.starts_with("cuMemset") || call.function == "cuMemcpyAsync") {
            expect_failure(call, [] { failure(5, 4); });
        }
    }
}

// The table's rows in their order; there may be more work between them.
TEST_F(SelfTest, MakesEachDeviceDoItsPart) {
    const std::vector<std::string> rows{
        "device 4 poisons",  "device 5 stores", "device 4 compares", "device 4 stores",
        "device 5 compares", "device 5 copies", "device 4 compares"};
    std::vector<std::string> done;
    std::size_t poisoned = 0;
    std::size_t copied = 0;
    std::set<std::uint32_t> patterns;  // the memory's first word, when it is compared
    {
        CUdeviceptr memory = 0;
        const Watch watch(gpus(), [&](const Work& work) {
            const bool compares = work.what == "symm::test_pattern::Compare";
            if (work.what == "cuMemset" && work.device == 4) {
                memory = work.to;
                poisoned += work.bytes;
                CUcontext current = nullptr;
                cu_check(cuCtxGetCurrent(&current), "cuCtxGetCurrent()");
                EXPECT_EQ(current, gpu(4).device().context())
                    << "another device's context is current";
            } else if (work.what == "cuMemcpyAsync") {
                copied += work.bytes;
            } else if (compares && memory != 0) {
                patterns.insert(*reinterpret_cast<const std::uint32_t*>(memory));
            }
            done.push_back(fmt::format("device {} {}", work.device,
                                       compares                       ? "compares"
                                       : work.what == "cuMemset"      ? "poisons"
                                       : work.what == "cuMemcpyAsync" ? "copies"
                                                                      : "stores"));
        });
        ASSERT_EQ(failure(5, 4), "");
    }
    std::size_t row = 0;
    for (const std::string& one : done) {
        row += row < rows.size() && one == rows[row];
    }
    ASSERT_EQ(row, rows.size()) << "row " << row + 1 << ", '" << rows[row] << "', is missing in\n"
                                << fmt::format("{}", fmt::join(done, "\n"));
    EXPECT_GE(poisoned, 40'004u) << "not all of the memory was poisoned";
    EXPECT_EQ(copied, 40'004u) << "more or less was copied than the pattern";
    EXPECT_EQ(patterns.size(), 3u) << "two comparisons look for the same pattern";
}

}  // namespace
}  // namespace symm
