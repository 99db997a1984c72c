// Every driver call of every path fails once: the error names the call, and nothing leaks.

#include <array>
#include <functional>
#include <span>

#include "labs/02_access/access.hpp"
#include "labs/02_access/access_steps.hpp"
#include "labs/02_access/bandwidth.hpp"
#include "labs/02_access/latency.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"

namespace symm {
namespace {

class EveryCallFails : public AccessLabTest {
protected:
    void SetUp() override {
        AccessLabTest::SetUp();
        SYMM_NEEDS(is_emulated());
        SYMM_NEEDS(has_peers());
    }

    /// Fails each call that `path` makes, but for calls that give something back (lab 01's tests
    /// and program_test.cpp fail them). A wait polls as often as it has to, so only its first
    /// cuStreamQuery is certain.
    static void fail_each_call_of(const std::function<void()>& path) {
        const std::size_t calls = fail_each_call(
            [&] {
                path();
                return std::shared_ptr<void>();
            },
            [](const CallOfPath& call) {
                return !gives_back(call.function) &&
                       (call.function != "cuStreamQuery" || call.number == 1);
            });
        EXPECT_GT(calls, 0u);
        path();  // and everything works again
    }

    PeerMatrix matrix_ = PeerMatrix::query();
};

TEST_F(EveryCallFails, InSharedBuffer) {
    const std::vector<int> users = all_devices();
    const std::size_t calls =
        fail_each_call([&] { return std::make_shared<SharedBuffer>(0, 4096, users); });
    EXPECT_EQ(calls, 5u);  // granularity, create, reserve, map, access
}

TEST_F(EveryCallFails, InThePeerMatrix) {
    fail_each_call_of([] { PeerMatrix::query(); });
}

TEST_F(EveryCallFails, InAGpu) {
    fail_each_call_of([] { const Gpu one_more(0); });
}

TEST_F(EveryCallFails, InTheSelfTestOfAPair) {
    fail_each_call_of([&] { EXPECT_EQ(check_pair(gpu(1), gpu(0), 100), ""); });
}

TEST_F(EveryCallFails, InEveryStep) {
    // Two devices are enough, and quicker.
    for (int device = 2; device <= last_device(); ++device) {
        if (matrix_.usable({device, 0})) {
            matrix_.exclude({device, 0}, "to be quicker");
        }
    }
    const StepContext context{std::span(gpus()).first(2), matrix_, 0, 100};
    for (const AccessStep& step : kAccessSteps) {
        fail_each_call_of([&] { step(context); });
    }
}

TEST_F(EveryCallFails, InTheTransferBench) {
    fail_each_call_of([&] { const TransferBench bench(gpus(), matrix_, 4096); });
}

TEST_F(EveryCallFails, InARunOfTransfers) {
    TransferBench bench(gpus(), matrix_, 4096);
    for (const Method method : kMethods) {
        fail_each_call_of([&] { bench.run(method, std::array{Route{0, 1}, Route{1, 0}}, 2); });
    }
}

TEST_F(EveryCallFails, InTheLatency) {
    fail_each_call_of([&] { load_latency_ns(gpu(1), gpu(0), 8, 10); });
}

}  // namespace
}  // namespace symm
