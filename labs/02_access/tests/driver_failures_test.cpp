// Every driver call of every path fails once: the error names the call, and nothing leaks.

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <optional>
#include <span>

#include "labs/01_vmm_alloc/memory_properties.hpp"
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
        if (!is_emulated()) {
            GTEST_SKIP() << "only the emulated driver fails on demand";
        }
        SYMM_NEED_PEERS();
    }

    /// Fails each call that `path` makes, one after the other. Most errors have to be thrown and to
    /// leave nothing behind. A call that releases something at the end has to be logged by the
    /// owner, and to leave that behind. A wait polls as often as it has to, so only its first
    /// cuStreamQuery is certain. A destructor that restores the thread's capture mode reports
    /// nothing.
    void fail_each_call_of(const std::function<void()>& path) {
        std::size_t tried = 0;
        for (const CallOfPath& call : calls_of(path)) {
            if ((call.function == "cuStreamQuery" && call.number > 1) ||
                call.function == "cuThreadExchangeStreamCaptureMode") {
                continue;
            }
            const emu::Inventory before = emu::inventory();
            if (const auto kept = kept_without(call.function)) {
                expect_logged(call, path);
                EXPECT_EQ(emu::inventory(), sum(before, *kept))
                    << "call " << call.number << " of " << call.function;
                before_ = sum(before_, *kept);
            } else {
                expect_failure(call, path);
                EXPECT_EQ(emu::inventory(), before)
                    << "call " << call.number << " of " << call.function << " left this behind";
            }
            ++tried;
        }
        EXPECT_GT(tried, 0u);
        path();  // and everything works again
    }

    /// The inventory that remains if this function fails in a destructor; nothing for a function
    /// that releases nothing. All buffers here have one granule. A mapping that cannot be undone
    /// keeps its addresses and its memory, but not the handle.
    static std::optional<emu::Inventory> kept_without(std::string_view function) {
        const std::size_t unit = granularity(device_memory(0));
        const std::pair<std::string_view, emu::Inventory> kept[] = {
            {"cuMemUnmap",
             {{"physical allocations", 1},
              {"physical bytes", unit},
              {"reservations", 1},
              {"reserved bytes", unit},
              {"mappings", 1}}},
            {"cuMemAddressFree", {{"reservations", 1}, {"reserved bytes", unit}}},
            {"cuMemRelease",
             {{"physical allocations", 1}, {"physical bytes", unit}, {"handle references", 1}}},
            {"cuStreamDestroy", {{"streams", 1}}},
            {"cuEventDestroy", {{"events", 1}}},
            {"cuMemFree", {{"plain allocations", 1}}},
            {"cuMemFreeHost", {{"pinned host allocations", 1}}},
            {"cuDevicePrimaryCtxRelease", {}},  // other owners still retain it
        };
        const auto found = std::find_if(std::begin(kept), std::end(kept),
                                        [&](const auto& one) { return one.first == function; });
        return found == std::end(kept) ? std::nullopt : std::optional(found->second);
    }

    static emu::Inventory sum(emu::Inventory one, const emu::Inventory& other) {
        for (const auto& [kind, count] : other) {
            one[kind] += count;
        }
        return one;
    }

    static void expect_logged(const CallOfPath& call, const std::function<void()>& path) {
        SCOPED_TRACE(fmt::format("failing call {} of {}", call.number, call.function));
        emu::fail_call(call.function, call.number, kInjected);
        const std::string logged = logged_by(path);
        emu::clear_failures();
        EXPECT_NE(logged.find(fmt::format("{}(", call.function)), std::string::npos) << logged;
        EXPECT_NE(logged.find(name_of(kInjected)), std::string::npos) << logged;
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

TEST_F(EveryCallFails, InABufferThatComesAndGoes) {
    fail_each_call_of([] { const SharedBuffer buffer(0, 4096, {}); });
}

}  // namespace
}  // namespace symm
