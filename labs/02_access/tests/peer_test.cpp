// The peer matrix, the self-test, and what stands on them.

#include <numeric>

#include "labs/02_access/access_steps.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"

namespace symm {
namespace {

class Peers : public AccessLabTest {};

TEST_F(Peers, AreWhatTheDriverSaysTheyAre) {
    const PeerMatrix matrix = PeerMatrix::query();
    ASSERT_EQ(matrix.devices(), static_cast<int>(gpus().size()));
    for (int a = 0; a < matrix.devices(); ++a) {
        for (int b = 0; b < matrix.devices(); ++b) {
            int can = a == b;
            if (a != b) {
                ASSERT_EQ(
                    cuDeviceCanAccessPeer(&can, gpu(a).device().handle(), gpu(b).device().handle()),
                    CUDA_SUCCESS);
            }
            EXPECT_EQ(matrix.link({a, b}).access, can != 0) << a << " " << b;
            EXPECT_EQ(matrix.usable({a, b}), can != 0) << a << " " << b;
        }
    }
}

TEST_F(Peers, ThatAreExcludedAreUsedNoMore) {
    SYMM_NEED_PEERS();
    PeerMatrix matrix = PeerMatrix::query();
    const Pair pair = matrix.usable_pairs().back();
    const std::size_t before = matrix.usable_pairs().size();
    matrix.exclude(pair, "it lost a word");
    matrix.exclude(pair, "a second reason");
    EXPECT_FALSE(matrix.usable(pair));
    EXPECT_TRUE(matrix.link(pair).access) << "what the driver claims is still to be seen";
    EXPECT_EQ(matrix.link(pair).excluded, "it lost a word");
    EXPECT_EQ(matrix.usable_pairs().size(), before - 1) << "the other direction stays";
    EXPECT_EQ(matrix.excluded_pairs(), std::vector<Pair>{pair});
    const std::vector<int> users = matrix.users_of(pair.owner);
    EXPECT_EQ(std::count(users.begin(), users.end(), pair.accessor), 0);
    EXPECT_EQ(std::count(users.begin(), users.end(), pair.owner), 1);
    EXPECT_NE(matrix.text().find("it lost a word"), std::string::npos);
    EXPECT_NE(matrix.text().find(describe(pair)), std::string::npos);
    EXPECT_TRUE(PeerMatrix::query().excluded_pairs().empty()) << "each matrix has its own";
}

TEST_F(Peers, CannotBeExcludedWhereTheyAreNone) {
    PeerMatrix matrix = PeerMatrix::query();
    EXPECT_THROW(matrix.exclude({0, 0}, "own"), std::invalid_argument);
    EXPECT_THROW(matrix.exclude({0, 99}, "far"), std::out_of_range);
    EXPECT_THROW(matrix.exclude({-1, 0}, "negative"), std::out_of_range);
    EXPECT_THROW((void)matrix.link({99, 0}), std::out_of_range);
    EXPECT_TRUE(matrix.excluded_pairs().empty());
}

TEST_F(Peers, OfAGoodMachineAllPassTheSelfTest) {
    for (const std::size_t bytes : {4u, 20u, 70'004u}) {
        PeerMatrix matrix = PeerMatrix::query();
        const auto pairs = matrix.usable_pairs();
        const auto reports = check_peers(matrix, gpus(), bytes);
        ASSERT_EQ(reports.size(), pairs.size());
        for (std::size_t i = 0; i < reports.size(); ++i) {
            EXPECT_EQ(reports[i].pair, pairs[i]);
            EXPECT_EQ(reports[i].failure, "") << describe(reports[i].pair);
        }
        EXPECT_TRUE(matrix.excluded_pairs().empty());
    }
}

TEST_F(Peers, AreGivenAndDeniedAccessStepByStep) {
    const PeerMatrix matrix = PeerMatrix::query();
    for (const int owner : {0, last_device()}) {
        std::vector<std::string> titles;
        const bool right =
            run_access_steps({gpus(), matrix, owner, 1'004}, [&](const StepReport& report) {
                titles.push_back(report.title);
                EXPECT_TRUE(report.right) << report.title;
                EXPECT_FALSE(report.lines.empty());
            });
        EXPECT_TRUE(right);
        EXPECT_EQ(titles.size(), 7u);
    }
}

TEST_F(Peers, WriteAndReadOneBufferOfAnySize) {
    const PeerMatrix matrix = PeerMatrix::query();
    for (const int owner : {0, last_device()}) {
        for (const std::size_t bytes : {4u, 12u, 64u, 4'100u, 131'072u}) {
            const StepReport report = written_by_all({gpus(), matrix, owner, bytes});
            EXPECT_TRUE(report.right) << bytes << " bytes of device " << owner;
            EXPECT_EQ(report.lines.size(), matrix.users_of(owner).size());
        }
    }
}

TEST_F(Peers, ThatAreExcludedTakeNoPartInTheSteps) {
    SYMM_NEED_PEERS();
    PeerMatrix matrix = PeerMatrix::query();
    const Pair pair = matrix.usable_pairs().front();
    matrix.exclude(pair, "for this test");
    const StepReport report = written_by_all({gpus(), matrix, pair.owner, 4'100});
    EXPECT_TRUE(report.right);
    EXPECT_EQ(report.lines.size(), gpus().size() - 1);
}

TEST_F(Peers, OfADeviceAloneAreNoneAndAllStepsStillWork) {
    PeerMatrix matrix = PeerMatrix::query();
    for (const Pair& pair : matrix.usable_pairs()) {
        matrix.exclude(pair, "alone");
    }
    EXPECT_TRUE(run_access_steps({gpus(), matrix, 0, 1'004}, [](const StepReport& report) {
        EXPECT_TRUE(report.right) << report.title;
    }));
}

}  // namespace
}  // namespace symm
