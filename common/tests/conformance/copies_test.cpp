// Copies and fills.

#include <cstring>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

// Two plain allocations, a stream and pinned host memory.
class Copies : public Driver {
protected:
    static constexpr std::size_t kBytes = 100003;

    void SetUp() override {
        Driver::SetUp();
        ASSERT_OK(cuMemAlloc(&first_, kBytes + 64));
        ASSERT_OK(cuMemAlloc(&second_, kBytes + 64));
        ASSERT_OK(cuMemHostAlloc(&pinned_, kBytes, 0));
        ASSERT_OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    }
    void TearDown() override {
        EXPECT_OK(cuStreamDestroy(stream_));
        EXPECT_OK(cuMemFreeHost(pinned_));
        EXPECT_OK(cuMemFree(second_));
        EXPECT_OK(cuMemFree(first_));
        Driver::TearDown();
    }
    CUdeviceptr pinned() const { return reinterpret_cast<CUdeviceptr>(pinned_); }

    CUdeviceptr first_ = 0;
    CUdeviceptr second_ = 0;
    void* pinned_ = nullptr;
    CUstream stream_ = nullptr;
};

TEST_F(Copies, ThereAndBack) {
    const auto written = pattern(kBytes, 1);
    write_bytes(first_, written);
    EXPECT_EQ(read_bytes(first_, kBytes), written);
}

TEST_F(Copies, AnyAddressAndAnySize) {
    for (std::size_t offset : {0, 1, 3, 17}) {
        for (std::size_t bytes : {1, 2, 5, 64, 4095}) {
            write_bytes(first_, std::vector<unsigned char>(8192, 0xAA));
            const auto written = pattern(bytes, static_cast<unsigned>(offset + bytes));
            write_bytes(first_ + offset, written);
            EXPECT_EQ(read_bytes(first_ + offset, bytes), written) << offset << " " << bytes;
            EXPECT_EQ(read_bytes(first_ + offset + bytes, 1)[0], 0xAA) << offset << " " << bytes;
        }
    }
}

TEST_F(Copies, NoBytesIsNoWork) {
    write_bytes(first_, {42});
    unsigned char untouched = 7;
    EXPECT_OK(cuMemcpyHtoD(first_, &untouched, 0));
    EXPECT_OK(cuMemcpyDtoH(&untouched, first_, 0));
    EXPECT_EQ(untouched, 7);
    EXPECT_OK(cuMemcpyAsync(second_, first_, 0, stream_));
    EXPECT_EQ(read_bytes(first_, 1)[0], 42);
}

TEST_F(Copies, FromDeviceToDevice) {
    const auto written = pattern(kBytes, 2);
    write_bytes(first_, written);
    EXPECT_OK(cuMemcpyAsync(second_, first_, kBytes, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_bytes(second_, kBytes), written);
}

TEST_F(Copies, FromPinnedMemoryAndBack) {
    const auto written = pattern(kBytes, 3);
    std::memcpy(pinned_, written.data(), kBytes);
    EXPECT_OK(cuMemcpyAsync(first_, pinned(), kBytes, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    std::memset(pinned_, 0, kBytes);
    EXPECT_OK(cuMemcpyAsync(pinned(), first_, kBytes, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(std::memcmp(pinned_, written.data(), kBytes), 0);
}

TEST_F(Copies, BetweenMappedAndPlainMemory) {
    Buffer buffer(1);
    const auto written = pattern(kBytes, 4);
    write_bytes(first_, written);
    EXPECT_OK(cuMemcpyAsync(buffer.base() + 11, first_, kBytes, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_bytes(buffer.base() + 11, kBytes), written);
}

TEST_F(Copies, BetweenDevices) {
    if (!peers()) {
        GTEST_SKIP() << "needs two devices that are peers";
    }
    Buffer here(1, 0);
    Buffer there(1, 1);
    const CUmemAccessDesc access = access_for(0);
    ASSERT_OK(cuMemSetAccess(there.base(), there.size(), &access, 1));
    const auto written = pattern(here.size(), 5);
    write_bytes(here.base(), written);
    EXPECT_OK(cuMemcpyAsync(there.base(), here.base(), here.size(), stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_bytes(there.base(), there.size()), written);
}

TEST_F(Copies, HappenInTheOrderOfTheStream) {
    for (unsigned round = 0; round < 20; ++round) {
        EXPECT_OK(cuMemsetD8Async(first_, static_cast<unsigned char>(round), kBytes, stream_));
        EXPECT_OK(cuMemcpyAsync(second_, first_, kBytes, stream_));
        EXPECT_OK(cuMemsetD8Async(first_, 0xFF, kBytes, stream_));
    }
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_bytes(second_, kBytes), std::vector<unsigned char>(kBytes, 19));
    EXPECT_EQ(read_bytes(first_, kBytes), std::vector<unsigned char>(kBytes, 0xFF));
}

TEST_F(Copies, WantDeviceMemory) {
    unsigned char byte = 0;
    EXPECT_RESULT(cuMemcpyDtoH(&byte, 64, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuMemcpyHtoD(64, &byte, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Copies, WantAHostAddress) {
    EXPECT_RESULT(cuMemcpyDtoH(nullptr, first_, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuMemcpyHtoD(first_, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Copies, FillBytes) {
    write_bytes(first_, pattern(kBytes, 6));
    EXPECT_OK(cuMemsetD8Async(first_ + 1, 0x5A, kBytes - 1, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    std::vector<unsigned char> expected(kBytes, 0x5A);
    expected[0] = pattern(1, 6)[0];
    EXPECT_EQ(read_bytes(first_, kBytes), expected);
}

TEST_F(Copies, FillStopsWhereItShould) {
    write_bytes(first_, std::vector<unsigned char>(64, 1));
    EXPECT_OK(cuMemsetD8Async(first_, 2, 63, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_bytes(first_ + 62, 2), (std::vector<unsigned char>{2, 1}));
}

TEST_F(Copies, FillWords) {
    constexpr std::size_t kWords = 10007;
    EXPECT_OK(cuMemsetD32Async(first_, 0x01020304u, kWords, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    std::vector<unsigned> words(kWords);
    EXPECT_OK(cuMemcpyDtoH(words.data(), first_, kWords * 4));
    EXPECT_EQ(words, std::vector<unsigned>(kWords, 0x01020304u));
}

TEST_F(Copies, FillWordsWantsAWordsAddress) {
    EXPECT_RESULT(cuMemsetD32Async(first_ + 2, 1, 4, stream_), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Copies, FillNothingIsNoWork) {
    write_bytes(first_, {9});
    EXPECT_OK(cuMemsetD8Async(first_, 1, 0, stream_));
    EXPECT_OK(cuMemsetD32Async(first_, 1, 0, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_bytes(first_, 1)[0], 9);
}

TEST_F(Copies, FillWantsDeviceMemory) {
    EXPECT_RESULT(cuMemsetD8Async(64, 1, 1, stream_), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Copies, FillMappedMemoryAcrossNeighbours) {
    Memory first(1);
    Memory second(1);
    Range range(2 * unit());
    range.map(first, 0, {0});
    range.map(second, unit(), {0});
    EXPECT_OK(cuMemsetD32Async(range.base(), 0x11223344u, 2 * unit() / 4, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    std::vector<unsigned> words(2 * unit() / 4);
    EXPECT_OK(cuMemcpyDtoH(words.data(), range.base(), 2 * unit()));
    EXPECT_EQ(words, std::vector<unsigned>(words.size(), 0x11223344u));
}

}  // namespace
}  // namespace symm::conformance
