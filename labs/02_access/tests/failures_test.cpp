// Every driver call of every path fails once: the error names the call, nothing is left behind.

#include <array>
#include <set>
#include <span>

#include "labs/02_access/access.hpp"
#include "labs/02_access/access_steps.hpp"
#include "labs/02_access/latency.hpp"
#include "labs/02_access/shared_buffer.hpp"
#include "labs/02_access/shared_sum.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"
#include "labs/02_access/transfer.hpp"

namespace symm {
namespace {

class EveryCallFails : public AccessLabTest {
protected:
    void SetUp() override {
        AccessLabTest::SetUp();
        if (!is_emulated()) {
            GTEST_SKIP() << "only the emulated driver fails on demand";
        }
        SYMM_NEED_PEERS();
    }

    /// Fails each call that `path` makes on its way, and expects it to be told and nothing left. Of
    /// the calls that give something back at the end, each of which is logged by its owner and no
    /// error of the path, none fails here. A wait polls as often as it has to, so that only
    /// the first cuStreamQuery can be counted on.
    static void fail_each_call_on_the_way(const std::function<void()>& path) {
        static const std::set<std::string_view> kGivesBack = {"cuMemUnmap",
                                                              "cuMemAddressFree",
                                                              "cuMemRelease",
                                                              "cuStreamDestroy",
                                                              "cuEventDestroy",
                                                              "cuMemFreeHost",
                                                              "cuDevicePrimaryCtxRelease"};
        std::size_t tried = 0;
        for (const CallOfPath& call : calls_of(path)) {
            if (kGivesBack.contains(call.function) ||
                (call.function == "cuStreamQuery" && call.number > 1)) {
                continue;
            }
            const emu::Inventory before = emu::inventory();
            expect_told(call, path);
            EXPECT_EQ(emu::describe(emu::inventory()), emu::describe(before))
                << "call " << call.number << " of " << call.function << " left this behind";
            ++tried;
        }
        EXPECT_GT(tried, 0u);
        path();  // and all is as good as before
    }

    static void expect_told(const CallOfPath& call, const std::function<void()>& path) {
        SCOPED_TRACE(fmt::format("failing call {} of {}", call.number, call.function));
        emu::fail_call(call.function, call.number, kInjected);
        try {
            path();
            ADD_FAILURE() << "nothing was thrown";
        } catch (const CudaError& error) {
            EXPECT_EQ(name_of(error.result()), name_of(kInjected));
            EXPECT_NE(std::string_view(error.what()).find(call.function), std::string_view::npos)
                << "the error does not name the call: " << error.what();
        } catch (const std::exception& error) {
            ADD_FAILURE() << "not a CudaError: " << error.what();
        }
        emu::clear_failures();
    }

    PeerMatrix matrix_ = PeerMatrix::query();
};

TEST_F(EveryCallFails, InSharedBuffer) {
    const std::vector<int> users = all_devices();
    const std::size_t calls =
        fail_each_call([&] { return std::make_shared<SharedBuffer>(0, 4096, users); });
    EXPECT_EQ(calls, 6u);  // granularity, create, reserve, map, and access for one and for all
}

TEST_F(EveryCallFails, InHostNumaBuffer) {
    EXPECT_EQ(fail_each_call([] { return std::make_shared<HostNumaBuffer>(0, 4096); }), 4u);
}

TEST_F(EveryCallFails, InAllowingOneByOne) {
    const SharedBuffer buffer(0, 4096, {});
    const std::vector<int> users = all_devices();
    const auto path = [&] { allow_one_by_one(buffer.base(), buffer.size(), users); };
    fail_each_call_on_the_way(path);
    EXPECT_EQ(calls_of(path).size(), users.size());
}

TEST_F(EveryCallFails, InThePeerMatrix) {
    fail_each_call_on_the_way([] { PeerMatrix::query(); });
}

TEST_F(EveryCallFails, InAGpu) {
    fail_each_call_on_the_way([] { const Gpu one_more(0); });
}

TEST_F(EveryCallFails, InTheSelfTestOfAPair) {
    fail_each_call_on_the_way([&] {
        const PeerReport report = check_pair(gpu(1), gpu(0), 100);
        EXPECT_EQ(report.failure, "");
    });
}

TEST_F(EveryCallFails, InTheSharedSum) {
    fail_each_call_on_the_way([&] { sum_shared_buffer(gpus(), matrix_, 0, 1000); });
}

TEST_F(EveryCallFails, InEveryStep) {
    // Two devices are enough, and quicker.
    for (int device = 2; device <= last_device(); ++device) {
        if (matrix_.usable({device, 0})) {
            matrix_.exclude({device, 0}, "to be quicker");
        }
    }
    const StepContext context{std::span(gpus()).first(2), matrix_, 0, 100};
    for (const auto step :
         {all_at_once, one_by_one, read_only, added_later, taken_away, host_access}) {
        fail_each_call_on_the_way([&] { step(context); });
    }
}

TEST_F(EveryCallFails, InTheTransferBench) {
    fail_each_call_on_the_way([&] { const TransferBench bench(gpus(), matrix_, 4096); });
}

TEST_F(EveryCallFails, InARunOfTransfers) {
    TransferBench bench(gpus(), matrix_, 4096);
    for (const Method method : {Method::kLoads, Method::kStores, Method::kCopyEngine}) {
        const std::array both{PeerTransfer{0, 1, method, 0, 0, 4096},
                              PeerTransfer{1, 0, method, 0, 0, 4096}};
        fail_each_call_on_the_way([&] { bench.run(both, 2); });
    }
}

TEST_F(EveryCallFails, InTheLatency) {
    fail_each_call_on_the_way([&] { load_latency_ns(gpu(1), gpu(0), 1024, 10); });
}

TEST_F(EveryCallFails, AndTheOwnersThatCannotGiveBackSaySoAndGoOn) {
    // A failing cuMemUnmap leaves a mapping in the range: only what the driver kept is left, and no
    // exception leaves a destructor.
    for (const char* function : {"cuMemRelease", "cuMemAddressFree"}) {
        emu::fail_call(function, 1, kInjected);
        { const SharedBuffer buffer(0, 4096, {}); }
        emu::clear_failures();
    }
    before_ = emu::inventory();  // what the driver refused to take back
}

}  // namespace
}  // namespace symm
