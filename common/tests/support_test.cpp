// Small parts of common/ that every program uses.

#include <gtest/gtest.h>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/event.hpp"
#include "common/cuda/graph.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/table.hpp"
#include "common/sys/usage_error.hpp"
#include "common/tests/text_thrown_by.hpp"

namespace symm {
namespace {

TEST(Bytes, AreReadAsPeopleWriteThem) {
    const std::pair<const char*, std::size_t> sizes[] = {
        {"0", 0}, {"4097", 4097}, {"64K", 65536}, {"3MiB", 3 << 20}, {"1g", 1 << 30}};
    for (const auto& [text, bytes] : sizes) {
        EXPECT_EQ(parse_bytes(text), bytes);
        EXPECT_EQ(parse_bytes(format_bytes(bytes)), bytes);
    }
    EXPECT_EQ(format_bytes(65536), "64K");
    for (const char* text :
         {"", "K", "1.5M", "-1", "12Q", "1 M", "99999999999999999999", "9999999999G"}) {
        EXPECT_THROW(parse_bytes(text), UsageError) << text;
    }
}

TEST(Table, AlignsItsColumns) {
    EXPECT_EQ(table_text({{"what", "us", "note"}, {"a", "1.25"}, {"longer", "10.00", "slow"}}),
              "what       us  note\n-------------------\na        1.25\nlonger  10.00  slow\n");
    EXPECT_THROW(table_text({{"what"}, {"a", "b"}}), std::out_of_range);
}

TEST(Check, NamesCallResultAndRemedy) {
    try {
        cu_check(CUDA_ERROR_INVALID_VALUE, "cuMemCreate(size={})", 12345);
        FAIL() << "it must throw";
    } catch (const CudaError& error) {
        EXPECT_EQ(error.result(), CUDA_ERROR_INVALID_VALUE);
        const std::string text = error.what();
        EXPECT_EQ(text.find("cuMemCreate(size=12345) failed: CUDA_ERROR_INVALID_VALUE. "), 0U)
            << text;
        EXPECT_NE(text.find("granularity"), std::string::npos) << text;
    }
    EXPECT_NO_THROW(cu_check(CUDA_SUCCESS, "cuInit(0)"));
}

TEST(Driver, IsChosenOnceAndByAKnownName) {
    EXPECT_THROW(choose_driver("banana"), std::invalid_argument);
    EXPECT_GE(device_count(), 1);
    EXPECT_NE(describe_driver().find("device"), std::string::npos);
    EXPECT_THROW(choose_driver(is_emulated() ? "native" : "emulated"), std::logic_error);
}

TEST(Device, SaysWhichThereAre) {
    EXPECT_THROW(Device(-1), CudaError);
    EXPECT_THROW(Device{device_count()}, CudaError);
    const Device device(0);
    EXPECT_FALSE(device.name().empty());
    EXPECT_GT(device.total_memory(), 0U);
}

TEST(CurrentContext, RestoresTheCallersContextOrNone) {
    const Device device(0);
    const auto current = [] {
        CUcontext context = nullptr;
        cu_check(cuCtxGetCurrent(&context), "cuCtxGetCurrent()");
        return context;
    };
    cu_check(cuCtxSetCurrent(nullptr), "cuCtxSetCurrent()");
    {
        const CurrentContext guard(device);
        EXPECT_EQ(current(), device.context());
        const CurrentContext again(device);
        EXPECT_EQ(current(), device.context());
    }
    EXPECT_EQ(current(), nullptr);
    device.make_current();
}

TEST(Graph, GivesTheRecordingBackWhenTheQueueingThrows) {
    const Device device(0);
    const Stream stream;
    EXPECT_THROW(Graph::capture(stream.get(), [] { throw std::runtime_error("no"); }),
                 std::runtime_error);
    const Event event;
    event.record(stream.get());  // the stream no longer captures
    EXPECT_NO_THROW(stream.synchronize());
}

TEST(KernelTimeout, TellsWhatTheKernelReported) {
    const Device device(0);
    KernelTimeout timeout(std::chrono::milliseconds{100});
    const Stream stream;
    EXPECT_NO_THROW(timeout.synchronize(stream, "nothing"));
    timeout.abort();
    EXPECT_EQ(testing::text_thrown_by([&] { timeout.synchronize(stream, "nothing"); }),
              "the kernel was aborted before any of its waits had timed out");
}

TEST(KernelTimeout, IsNotGivenUpIfNoKernelWaited) {
    const Device device(0);
    KernelTimeout timeout;
    const Stream stream;
    timeout.end_waits();
    EXPECT_NO_THROW(timeout.synchronize(stream, "nothing"));
    timeout.abort();
    timeout.end_waits();  // does not undo the other
    EXPECT_TRUE(timeout.has_given_up());
}

}  // namespace
}  // namespace symm
