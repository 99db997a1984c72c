// The peer matrix, the self-test, and the steps that use them.

#include <fmt/ranges.h>

#include <chrono>
#include <map>
#include <thread>

#include "common/cuda/kernel_timeout.hpp"
#include "labs/02_access/access_steps.hpp"
#include "labs/02_access/kernels.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"
#include "labs/02_access/tests/watch.hpp"

namespace symm {
namespace {

class Peers : public AccessLabTest {
protected:
    static StepReport written_by_all(const StepContext& context) {
        return kAccessSteps.back()(context);
    }
};

TEST_F(Peers, AreWhatTheDriverSaysTheyAre) {
    const PeerMatrix matrix = PeerMatrix::query();
    for (int a = 0; a <= last_device(); ++a) {
        for (int b = 0; b <= last_device(); ++b) {
            EXPECT_EQ(matrix.link({a, b}).access, can_access(a, b)) << a << " " << b;
            EXPECT_EQ(matrix.usable({a, b}), can_access(a, b)) << a << " " << b;
        }
    }
    for (const Pair& none : {Pair{0, last_device() + 1}, Pair{-1, 0}, Pair{99, 0}}) {
        EXPECT_THROW((void)matrix.link(none), std::out_of_range) << describe(none);
    }
}

TEST_F(Peers, ThatAreExcludedAreUsedNoMore) {
    SYMM_NEEDS(has_peers());
    PeerMatrix matrix = PeerMatrix::query();
    const Pair pair = matrix.usable_pairs().back();
    const std::size_t before = matrix.usable_pairs().size();
    matrix.exclude(pair, "it lost a word");
    EXPECT_FALSE(matrix.usable(pair));
    EXPECT_TRUE(matrix.link(pair).access) << "the driver's claim stays visible";
    EXPECT_EQ(matrix.link(pair).excluded, "it lost a word");
    EXPECT_EQ(matrix.usable_pairs().size(), before - 1) << "the other direction stays";
    const std::vector<int> users = matrix.users_of(pair.owner);
    EXPECT_EQ(std::count(users.begin(), users.end(), pair.accessor), 0);
    EXPECT_EQ(std::count(users.begin(), users.end(), pair.owner), 1);
    EXPECT_NE(matrix.text().find("EXCLUDED"), std::string::npos);
    EXPECT_TRUE(PeerMatrix::query().usable(pair)) << "each matrix has its own exclusions";
}

TEST_F(Peers, OfAGoodMachineAllPassTheSelfTest) {
    for (const std::size_t bytes : {4u, 20u, 70'004u}) {
        PeerMatrix matrix = PeerMatrix::query();
        const auto pairs = matrix.usable_pairs();
        EXPECT_EQ(check_peers(matrix, gpus(), bytes), std::vector<Pair>());
        EXPECT_EQ(matrix.usable_pairs(), pairs);
    }
}

TEST_F(Peers, AreGivenAndDeniedAccessStepByStep) {
    const PeerMatrix matrix = PeerMatrix::query();
    for (const int owner : {0, last_device()}) {
        for (const AccessStep& step : kAccessSteps) {
            const StepReport report = step({gpus(), matrix, owner, 1'004});
            EXPECT_TRUE(report.right) << report.title;
            EXPECT_FALSE(report.lines.empty());
        }
    }
}

TEST_F(Peers, AreReportedWhereSomethingIsWrong) {
    StepReport report;
    report.expect(true, "one");
    EXPECT_TRUE(report.right);
    report.expect(false, "two");
    report.expect(true, "three");
    EXPECT_FALSE(report.right);
    EXPECT_EQ(report.lines, (std::vector<std::string>{"one", "WRONG: two", "three"}));
}

TEST_F(Peers, WriteAndReadOneBufferOfAnySize) {
    const PeerMatrix matrix = PeerMatrix::query();
    for (const int owner : {0, last_device()}) {
        for (const std::size_t bytes : {4u, 12u, 64u, 4'100u, 131'072u}) {
            const StepReport report = written_by_all({gpus(), matrix, owner, bytes});
            EXPECT_TRUE(report.right) << bytes << " bytes of device " << owner;
            EXPECT_EQ(report.lines.size(), 1 + matrix.users_of(owner).size());
        }
    }
}

TEST_F(Peers, ReadWhatAllOfThemHaveWritten) {
    SYMM_NEEDS(is_emulated());  // only the emulated driver reports the launches
    const PeerMatrix matrix = PeerMatrix::query();
    const std::vector<int> users = matrix.users_of(0);
    std::map<int, std::size_t> compared;  // parts, by device
    {
        const Watch watch(gpus(), [&](const Work& work) {
            compared[work.device] += work.what == "symm::test_pattern::Compare";
        });
        EXPECT_TRUE(written_by_all({gpus(), matrix, 0, 4'100}).right);
    }
    for (const int reader : users) {
        EXPECT_GE(compared[reader], users.size())
            << "device " << reader << " has not read the parts of all devices";
    }
}

TEST_F(Peers, ReadNothingAfterAWaitThatFailed) {
    SYMM_NEEDS(is_emulated());
    const PeerMatrix matrix = PeerMatrix::query();
    const auto step = [&] { written_by_all({gpus(), matrix, 0, 4'100}); };
    for (const CallOfPath& call : calls_of(step)) {
        // A wait polls as often as it has to, so only its first cuStreamQuery is certain.
        if (call.function.ends_with("Synchronize") ||
            (call.function == "cuStreamQuery" && call.number == 1)) {
            expect_failure(call, step);
        }
    }
}

// Each device in turn is late: a gate in its stream holds back its writes until the kernels of all
// devices are queued, and for a while longer.
// Device 1 cannot reach the buffer where there are others: so users[i] is not device i.
TEST_F(Peers, ReadNothingBeforeTheLastOfThemHasWritten) {
    PeerMatrix matrix = PeerMatrix::query();
    if (matrix.users_of(0).size() > 2) {
        matrix.exclude({1, 0}, "for this test");
    }
    const auto launches = [] { return emu::calls_made("cuLaunchKernel"); };
    for (const int late : matrix.users_of(0)) {
        gpu(late).make_current();
        const PinnedMemory open(sizeof(std::uint32_t));
        KernelTimeout timeout;
        const Drained before_the_flag_goes(gpu(late));
        queue_gate(gpu(late).stream(), open.as<std::uint32_t>(), timeout.timeout());
        const long all = launches() + static_cast<long>(matrix.users_of(0).size());
        bool all_write = true;
        std::jthread opener([&, flag = open.as<std::uint32_t>()] {
            const Deadline deadline = Deadline::after(std::chrono::seconds(1));
            do {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                all_write = !is_emulated() || launches() >= all;
            } while (!all_write && !deadline.passed());
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            simt::store(flag, 1u, simt::Order::kRelaxed);
        });
        const StepReport report = written_by_all({gpus(), matrix, 0, 4'100});
        opener.join();
        ASSERT_TRUE(all_write) << "not all devices write while device " << late << " is late";
        EXPECT_TRUE(report.right) << "device " << late << " was late\n"
                                  << fmt::format("{}", fmt::join(report.lines, "\n"));
        timeout.synchronize(gpu(late).owned_stream(), "the gate");
    }
}

TEST_F(Peers, ThatAreExcludedTakeNoPartInTheSteps) {
    SYMM_NEEDS(has_peers());
    PeerMatrix matrix = PeerMatrix::query();
    const Pair pair = matrix.usable_pairs().front();
    matrix.exclude(pair, "for this test");
    const StepReport report = written_by_all({gpus(), matrix, pair.owner, 4'100});
    EXPECT_TRUE(report.right);
    EXPECT_EQ(report.lines.size(), 1 + gpus().size() - 1);
}

TEST_F(Peers, OfADeviceAloneAreNoneAndAllStepsStillWork) {
    PeerMatrix matrix = PeerMatrix::query();
    for (const Pair& pair : matrix.usable_pairs()) {
        matrix.exclude(pair, "alone");
    }
    for (const AccessStep& step : kAccessSteps) {
        const StepReport report = step({gpus(), matrix, 0, 1'004});
        EXPECT_TRUE(report.right) << report.title;
    }
}

}  // namespace
}  // namespace symm
