// Every driver call of every path fails once: the error names the call, and nothing leaks.

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "common/tests/run_program.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/growable_buffer.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/mem_alloc.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/own_context.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"

namespace symm {
namespace {

class EveryCallFails : public LabTest {
protected:
    void SetUp() override {
        LabTest::SetUp();
        SYMM_NEEDS(is_emulated());
        unit_ = granularity(device_memory(0));
    }

    std::size_t unit_ = 0;
};

TEST_F(EveryCallFails, InDeviceBuffer) {
    const std::size_t calls =
        fail_each_call([&] { return std::make_shared<DeviceBuffer>(0, 3 * unit_); });
    EXPECT_EQ(calls, 5u);  // granularity, create, reserve, map, access
}

TEST_F(EveryCallFails, InGrowableBuffer) {
    EXPECT_EQ(fail_each_call([&] { return std::make_shared<GrowableBuffer>(0, 8 * unit_); }),
              2u);  // granularity, reserve
}

TEST_F(EveryCallFails, InMappedAtAndInOwnContext) {
    const DeviceBuffer buffer(0, unit_);
    EXPECT_EQ(fail_each_call([&] {
                  return std::make_shared<PhysicalMemory>(PhysicalMemory::mapped_at(buffer.base()));
              }),
              2u);
    EXPECT_EQ(fail_each_call([] { return std::make_shared<OwnContext>(0); }), 2u);
}

TEST_F(EveryCallFails, InMemAlloc) {
    mem_free(mem_alloc(1));  // makes the queries that are made only once
    for (std::size_t segments : {1, 3}) {
        const std::size_t calls = fail_each_call(
            [&] { return std::shared_ptr<void>(mem_alloc(segments * unit_, unit_), mem_free); });
        EXPECT_GE(calls, 4 + 3 * segments) << "create, map and release for each segment";
    }
}

TEST_F(EveryCallFails, InMemFree) {
    const auto allocate = [&] { return mem_alloc(3 * unit_, unit_); };
    void* pointer = allocate();
    const auto calls = calls_of([&] { mem_free(pointer); });
    EXPECT_GE(calls.size(), 3u * 4u);
    for (const CallOfPath& call : calls) {
        pointer = allocate();
        expect_failure(call, [&] { mem_free(pointer); });
        if (!segments_from(pointer).empty()) {  // nothing has changed: it can still be freed
            EXPECT_EQ(segments_from(pointer).size(), 3u) << call.function;
            mem_free(pointer);
        }
        EXPECT_EQ(emu::inventory(), before_) << "call " << call.number << " of " << call.function;
    }
}

TEST_F(EveryCallFails, WhenABufferGrows) {
    GrowableBuffer buffer(0, 8 * unit_);
    buffer.resize(unit_);
    const auto calls = calls_of([&] { buffer.resize(3 * unit_); });
    EXPECT_EQ(calls.size(), 4u);  // create, map, release, access
    buffer.resize(unit_);
    for (const CallOfPath& call : calls) {
        const emu::Inventory before = emu::inventory();
        expect_failure(call, [&] { buffer.resize(3 * unit_); });
        EXPECT_EQ(buffer.size(), unit_);
        EXPECT_EQ(emu::inventory(), before) << call.function;
        buffer.resize(3 * unit_);
        buffer.resize(unit_);
    }
}

TEST_F(EveryCallFails, WhenABufferShrinks) {
    for (long k : {1, 2}) {
        GrowableBuffer buffer(0, 8 * unit_);
        buffer.resize(unit_);
        buffer.resize(2 * unit_);
        expect_failure({"cuMemUnmap", k}, [&] { buffer.resize(0); });
        buffer.resize(0);
        EXPECT_EQ(buffer.size(), 0u);
        buffer.resize(2 * unit_);  // as good as new
    }
}

TEST_F(EveryCallFails, WhenOwnersLetGoEarly) {
    auto memory = PhysicalMemory::create(device_memory(0), unit_);
    AddressRange range(unit_);
    Mapping mapping(range.base(), unit_, memory);
    expect_failure({"cuMemUnmap", 1}, [&] { mapping.close(); });
    EXPECT_TRUE(mapping);
    mapping.close();
    expect_failure({"cuMemAddressFree", 1}, [&] { range.close(); });
    EXPECT_TRUE(range);
    expect_failure({"cuMemRelease", 1}, [&] { memory.close(); });
    EXPECT_TRUE(memory);
}

TEST_F(EveryCallFails, DestructorsNameItAndDoNotThrow) {
    // `clean_up` releases by hand what the owner could not release, and has forgotten.
    const auto expect_named = [](std::string_view function, const std::function<void()>& destroy,
                                 const std::function<CUresult()>& clean_up) {
        emu::fail_call(function, 1, kInjected);
        const std::string logged = logged_by(destroy);
        EXPECT_NE(logged.find(fmt::format("{}(", function)), std::string::npos) << logged;
        EXPECT_NE(logged.find(name_of(kInjected)), std::string::npos) << logged;
        EXPECT_EQ(clean_up(), CUDA_SUCCESS) << function;
    };
    auto memory = PhysicalMemory::create(device_memory(0), unit_);
    AddressRange range(unit_);
    Mapping mapping(range.base(), unit_, memory);
    auto own = std::make_unique<OwnContext>(0);
    const auto handle = memory.handle();
    const CUdeviceptr base = range.base();
    const CUcontext context = own->get();
    expect_named(
        "cuCtxDestroy", [&] { own.reset(); }, [&] { return cuCtxDestroy(context); });
    expect_named(
        "cuMemUnmap", [&] { mapping.reset(); }, [&] { return cuMemUnmap(base, unit_); });
    expect_named(
        "cuMemAddressFree", [&] { range.reset(); }, [&] { return cuMemAddressFree(base, unit_); });
    expect_named(
        "cuMemRelease", [&] { memory.reset(); }, [&] { return cuMemRelease(handle); });
}

TEST_F(EveryCallFails, InPlainMemory) {
    setenv("SYMM_CUMEM_ENABLE", "0", 1);
    const std::size_t calls =
        fail_each_call([] { return std::shared_ptr<void>(mem_alloc(1000), mem_free); });
    EXPECT_EQ(calls, 2u);  // cuCtxGetDevice, cuMemAlloc
    void* pointer = mem_alloc(1000);
    const auto calls_of_free = calls_of([&] { mem_free(pointer); });
    EXPECT_EQ(calls_of_free.size(), 2u);  // cuMemRetainAllocationHandle, cuMemFree
    for (const CallOfPath& call : calls_of_free) {
        pointer = mem_alloc(1000);
        expect_failure(call, [&] { mem_free(pointer); });
        mem_free(pointer);  // nothing has changed
        EXPECT_EQ(emu::inventory(), before_) << call.function;
    }
    unsetenv("SYMM_CUMEM_ENABLE");
}

// Where FABRIC is refused, only a process's first allocation on a device asks for it. This process
// has two devices: one to list the calls of such an allocation, and another on which one of these
// calls fails.
TEST_F(EveryCallFails, DISABLED_InTheFirstMemAlloc) {
    std::shared_ptr<void> kept;
    const auto allocate = [&] { kept = std::shared_ptr<void>(mem_alloc(unit_), mem_free); };
    const Device other(1);
    const std::vector<CallOfPath> calls = calls_of(allocate);
    kept.reset();
    device_->make_current();
    const emu::Inventory before = emu::inventory();
    EXPECT_EQ(std::count_if(calls.begin(), calls.end(),
                            [](const CallOfPath& call) { return call.function == "cuMemCreate"; }),
              2)
        << "with FABRIC and without";
    fmt::print("calls: {}\n", calls.size());
    expect_failure(calls.at(std::stoul(std::getenv("SYMM_TEST_CALL"))), allocate);
    EXPECT_EQ(emu::inventory(), before);
    allocate();
    kept.reset();
}

TEST_F(EveryCallFails, InTheFirstMemAllocWhereFabricIsRefused) {
    std::size_t calls = 1;
    for (std::size_t call = 0; call < calls; ++call) {
        const Finished child =
            run_test("EveryCallFails.DISABLED_InTheFirstMemAlloc",
                     fmt::format("SYMM_EMU_DEVICES=2 SYMM_EMU_FABRIC=0 SYMM_TEST_CALL={}", call));
        ASSERT_EQ(child.exit_code, 0) << "call " << call << "\n" << child.output;
        const std::size_t told = child.output.find("calls: ");
        ASSERT_NE(told, std::string::npos) << child.output;
        calls = std::stoul(child.output.substr(told + std::strlen("calls: ")));
    }
    EXPECT_GE(calls, 15u);
}

}  // namespace
}  // namespace symm
