// Every driver call of every path fails once: the error names the call, nothing is left behind.

#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/growable_buffer.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/mem_alloc.hpp"
#include "labs/01_vmm_alloc/own_context.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"

namespace symm {
namespace {

class EveryCallFails : public LabTest {
protected:
    void SetUp() override {
        LabTest::SetUp();
        if (!is_emulated()) {
            GTEST_SKIP() << "only the emulated driver fails on demand";
        }
        unit_ = granularity(device_memory(0));
    }

    std::size_t unit_ = 0;
};

TEST_F(EveryCallFails, InDeviceBuffer) {
    const std::size_t calls =
        fail_each_call([&] { return std::make_shared<DeviceBuffer>(0, 3 * unit_); });
    EXPECT_EQ(calls, 5u);  // granularity, create, reserve, map, access
}

TEST_F(EveryCallFails, InMappedAt) {
    const DeviceBuffer buffer(0, unit_);
    const std::size_t calls = fail_each_call(
        [&] { return std::make_shared<PhysicalMemory>(PhysicalMemory::mapped_at(buffer.base())); });
    EXPECT_EQ(calls, 2u);
}

TEST_F(EveryCallFails, InOwnContext) {
    // cuDeviceGet, cuCtxCreate, cuCtxPopCurrent
    EXPECT_EQ(fail_each_call([] { return std::make_shared<OwnContext>(0); }), 3u);
}

TEST_F(EveryCallFails, InMemAlloc) {
    mem_free(mem_alloc(1));  // what is asked of a system only once has been asked
    for (std::size_t segments : {1, 3}) {
        const std::size_t calls = fail_each_call([&] {
            return std::shared_ptr<void>(mem_alloc(segments * unit_, {.segment_bytes = unit_}),
                                         mem_free);
        });
        EXPECT_GE(calls, 4 + 3 * segments) << "create, map and release for each segment";
    }
}

TEST_F(EveryCallFails, InMemFree) {
    const auto allocate = [&] { return mem_alloc(3 * unit_, {.segment_bytes = unit_}); };
    void* pointer = allocate();
    const auto calls = calls_of([&] { mem_free(pointer); });
    EXPECT_GE(calls.size(), 3u * 4u);
    for (const CallOfPath& call : calls) {
        pointer = allocate();
        expect_failure(call, [&] { mem_free(pointer); });
        if (!segments_from(pointer).empty()) {  // nothing was changed: it can be freed again
            EXPECT_EQ(segments_from(pointer).size(), 3u) << call.function;
            mem_free(pointer);
        }
        EXPECT_EQ(emu::describe(emu::inventory()), emu::describe(before_))
            << "call " << call.number << " of " << call.function;
    }
}

TEST_F(EveryCallFails, WhenABufferGrows) {
    GrowableBuffer buffer(0, 8 * unit_);
    buffer.resize(unit_);
    const auto calls = calls_of([&] { buffer.resize(3 * unit_); });
    EXPECT_EQ(calls.size(), 3u);  // create, map, access
    buffer.resize(unit_);
    for (const CallOfPath& call : calls) {
        const emu::Inventory before = emu::inventory();
        expect_failure(call, [&] { buffer.resize(3 * unit_); });
        EXPECT_EQ(buffer.size(), unit_);
        EXPECT_EQ(emu::describe(emu::inventory()), emu::describe(before)) << call.function;
        buffer.resize(3 * unit_);
        buffer.resize(unit_);
    }
}

TEST_F(EveryCallFails, WhenABufferShrinks) {
    for (const char* function : {"cuMemUnmap", "cuMemRelease"}) {
        for (long k : {1, 2}) {
            GrowableBuffer buffer(0, 8 * unit_);
            buffer.resize(unit_);
            buffer.resize(2 * unit_);
            expect_failure({function, k}, [&] { buffer.resize(0); });
            buffer.resize(0);
            EXPECT_EQ(buffer.size(), 0u);
            buffer.resize(2 * unit_);  // as good as new
        }
    }
}

TEST_F(EveryCallFails, WhenOwnersLetGoEarly) {
    auto memory = PhysicalMemory::create(device_memory(0), unit_);
    AddressRange range(unit_);
    Mapping mapping(range.base(), unit_, memory);
    expect_failure({"cuMemUnmap", 1}, [&] { mapping.unmap(); });
    EXPECT_TRUE(mapping);
    mapping.unmap();
    expect_failure({"cuMemAddressFree", 1}, [&] { range.free(); });
    EXPECT_TRUE(range);
    expect_failure({"cuMemRelease", 1}, [&] { memory.drop(); });
    EXPECT_TRUE(memory);
}

TEST_F(EveryCallFails, DestructorsReportAndDoNotThrow) {
    for (const char* function : {"cuMemUnmap", "cuMemAddressFree", "cuMemRelease"}) {
        auto memory = PhysicalMemory::create(device_memory(0), unit_);
        AddressRange range(unit_);
        Mapping mapping(range.base(), unit_, memory);
        // What the failing destructor leaves behind is put right by hand below.
        const auto handle = memory.handle();
        const CUdeviceptr base = range.base();
        emu::fail_call(function, 1, kInjected);
        mapping.reset();
        if (std::string_view(function) == "cuMemUnmap") {
            check(cuMemUnmap(base, unit_), "cuMemUnmap");
        }
        range.reset();
        if (std::string_view(function) == "cuMemAddressFree") {
            check(cuMemAddressFree(base, unit_), "cuMemAddressFree");
        }
        memory.reset();
        if (std::string_view(function) == "cuMemRelease") {
            check(cuMemRelease(handle), "cuMemRelease");
        }
    }
}

}  // namespace
}  // namespace symm
