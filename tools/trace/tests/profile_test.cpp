// The trace of driver calls, on the emulated driver.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "common/cuda/device.hpp"
#include "common/cuda/stream.hpp"
#include "common/driver/symbol_name.hpp"
#include "tools/trace/arguments.hpp"
#include "tools/trace/driver_calls.hpp"

namespace symm {
namespace {

using testing::ElementsAre;

std::vector<std::string> texts(const std::vector<DriverCall>& calls) {
    std::vector<std::string> all;
    for (const DriverCall& call : calls) {
        all.push_back(call.text);
    }
    return all;
}

class DriverCalls : public ::testing::Test {
protected:
    void SetUp() override { cuMemAlloc(&memory_, 4096); }
    void TearDown() override { cuMemFree(memory_); }

    Device device_{0};
    CUdeviceptr memory_ = 0;
};

TEST_F(DriverCalls, AreWrittenWithTheirArguments) {
    CUdeviceptr range = 0;
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    constexpr std::size_t kSize = 4 << 20;
    std::size_t granularity = 0;
    const auto calls = driver_calls_of([&] {
        cuMemGetAllocationGranularity(&granularity, &properties,
                                      CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
        cuMemCreate(&handle, kSize, &properties, 0);
        cuMemAddressReserve(&range, 2 * kSize, 0, 0, 0);
        cuMemMap(range + kSize, kSize, 0, handle, 0);
        cuMemSetAccess(range + kSize, kSize, &access, 1);
        cuMemUnmap(range + kSize, kSize);
        cuMemMap(range, kSize, 0, handle, 1);
        cuMemAddressFree(range, 2 * kSize);
        cuMemRelease(handle);
    });
    EXPECT_THAT(
        texts(calls),
        ElementsAre("cuMemGetAllocationGranularity(-> 2M, {device 0, fd}, RECOMMENDED)",
                    "cuMemCreate(&mem1, 4M, {device 0, fd}, 0)",
                    "cuMemAddressReserve(&va1, 8M, 0, 0, 0)", "cuMemMap(va1+4M, 4M, 0, mem1, 0)",
                    "cuMemSetAccess(va1+4M, 4M, {device 0: rw}, 1)", "cuMemUnmap(va1+4M, 4M)",
                    "cuMemMap(va1, 4M, 0, mem1, 1) = CUDA_ERROR_INVALID_VALUE",
                    "cuMemAddressFree(va1, 8M)", "cuMemRelease(mem1)"));
}

TEST_F(DriverCalls, OfAnEarlierStepsObjectsGetNewNames) {
    const auto ask = [&] {
        CUdeviceptr base = 0;
        std::size_t bytes = 0;
        cuMemGetAddressRange(&base, &bytes, memory_);
    };
    CUdeviceptr other = 0;
    driver_calls_of([&] { cuMemAlloc(&other, 1 << 20); });
    EXPECT_THAT(texts(driver_calls_of(ask)), ElementsAre("cuMemGetAddressRange(&va1, -> 4K, va1)"));
    const auto inside = driver_calls_of([&] { cuMemGetAddressRange(nullptr, nullptr, other + 2); });
    EXPECT_THAT(texts(inside), ElementsAre("cuMemGetAddressRange(null, null, va1+2)"));
    cuMemFree(other);
}

TEST_F(DriverCalls, OfOtherThreadsAndOutsideOfAStepAreLeftOut) {
    const auto calls = driver_calls_of([&] {
        std::thread([&] { cuMemsetD8Async(memory_, 0, 1, nullptr); }).join();
        cuMemsetD8Async(memory_, 0, 16, nullptr);
    });
    cuMemsetD8Async(memory_, 0, 32, nullptr);
    EXPECT_THAT(texts(calls), ElementsAre("cuMemsetD8Async(va1, _, 16, 0)"));
}

TEST_F(DriverCalls, EndWithAStepThatThrows) {
    EXPECT_THROW(driver_calls_of([] { throw std::runtime_error("no"); }), std::runtime_error);
    cuMemsetD8Async(memory_, 0, 1, nullptr);
    EXPECT_TRUE(driver_calls_of([] {}).empty());
}

TEST(Parameters, AreKnownForEveryFunctionThatTheRepositoryCalls) {
#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) \
    EXPECT_NE(trace::parameters_of(SYMM_SYMBOL_NAME(name)), nullptr) << #name;
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION
    EXPECT_EQ(trace::parameters_of("cuNoSuchFunction"), nullptr);
    const auto* parameters = trace::parameters_of("cuMemHostAlloc");
    ASSERT_EQ(parameters->size(), 3u);
    EXPECT_EQ((*parameters)[0].type, "void**");
    EXPECT_EQ((*parameters)[1].type, "size_t");
    EXPECT_EQ((*parameters)[2].type, "unsigned int");
    EXPECT_TRUE(trace::parameters_of("cuCtxSynchronize")->empty());
}

// CUPTI's structs have the parameters as members; cuIpcOpenMemHandle has one of 64 bytes.
TEST(Slots, LieWhereTheMembersOfAStructDo) {
    struct Arguments {
        CUdeviceptr* pointer;
        CUipcMemHandle handle;
        unsigned int flags;
    } const arguments{};
    const auto* parameters = trace::parameters_of("cuIpcOpenMemHandle_v2");
    ASSERT_NE(parameters, nullptr);
    EXPECT_THAT(trace::slots_in(&arguments, *parameters),
                ElementsAre(&arguments.pointer, &arguments.handle, &arguments.flags));

    struct Launch {
        CUfunction function;
        unsigned int shape[6];
        unsigned int shared_bytes;
        CUstream stream;
    } const launch{};
    const auto slots = trace::slots_in(&launch, *trace::parameters_of("cuLaunchKernel"));
    EXPECT_EQ(slots[7], &launch.shared_bytes);
    EXPECT_EQ(slots[8], &launch.stream);  // after four bytes of padding
}

TEST(Names, OfARangeThatReplacesOthersCountFromItsBase) {
    trace::Names names;
    names.remember(0x1000, 0x1000);
    names.remember(0x2000, 0x1000);
    EXPECT_EQ(names.of_address(0x2000), "va1");
    names.remember(0x1800, 0x1000);  // the two that it overlaps are gone
    EXPECT_EQ(names.of_address(0x2000), "va2+2K");
    EXPECT_EQ(names.of_address(0x1800), "va2");
    EXPECT_EQ(names.of_address(0x1400), "va3");
}

std::vector<DriverCall> calls(std::initializer_list<const char*> names) {
    std::vector<DriverCall> list;
    for (const std::string name : names) {
        list.push_back({name, name + "(" + std::to_string(list.size()) + ")", false});
    }
    return list;
}

TEST(Folded, WritesTheSequenceOnceThatSavesTheMostLines) {
    EXPECT_THAT(
        folded(calls({"a", "b", "c", "b", "c", "b", "c", "d"})),
        ElementsAre("    a(0)", "    3 times:", "        b(1)", "        c(2)", "    d(7)"));
    EXPECT_THAT(folded(calls({"a", "a", "b", "a", "a", "b"})),
                ElementsAre("    2 times:", "        a(0)", "        a(1)", "        b(2)"));
}

TEST(Folded, KeepsACallThatFailedApart) {
    auto list = calls({"a", "a", "a"});
    list[0].failed = true;
    EXPECT_THAT(folded(list), ElementsAre("    a(0)", "    2 times:", "        a(1)"));
}

TEST(Folded, CountsWhatOnlyAsks) {
    EXPECT_THAT(folded(calls({"cuInit", "a", "cuCtxGetDevice_v2", "a", "cuCtxGetDevice_v2"})),
                ElementsAre("    2 times:", "        a(1)",
                            "    and to ask or select: cuCtxGetDevice 2 times, cuInit"));
    EXPECT_TRUE(folded({}).empty());
}

TEST(Folded, BreaksLongLinesAfterAComma) {
    const std::string word(60, 'x');
    EXPECT_THAT(folded({{"a", "a(" + word + ", " + word + ")", false}}),
                ElementsAre("    a(" + word + ",", "        " + word + ")"));
    const std::string unbreakable(200, 'x');
    EXPECT_THAT(folded({{"a", unbreakable, false}}), ElementsAre("    " + unbreakable));
}

}  // namespace
}  // namespace symm
