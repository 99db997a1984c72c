// Copies and fills.

#include <cstring>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

// Two plain allocations, a stream and pinned host memory.
class Copies : public Driver {
protected:
    static constexpr std::size_t kBytes = 100003;

    // A copy in the stream, to its end.
    void copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes = kBytes) {
        EXPECT_OK(cuMemcpyAsync(to, from, bytes, stream_));
        EXPECT_OK(cuStreamSynchronize(stream_));
    }

    Allocation first_{kBytes + 64};
    Allocation second_{kBytes + 64};
    Pinned pinned_{kBytes};
    Stream stream_;
};

TEST_F(Copies, AnyAddressAndAnySize) {
    expect_written(first_.base, kBytes, 1);
    for (std::size_t offset : {0, 1, 3, 17}) {
        for (std::size_t bytes : {1, 2, 5, 64, 4095}) {
            write_bytes(first_.base, filled(8192, 0xAA));
            expect_written(first_.base + offset, bytes, static_cast<unsigned>(offset + bytes));
            EXPECT_EQ(read_bytes(first_.base + offset + bytes, 1)[0], 0xAA)
                << offset << " " << bytes;
        }
    }
}

TEST_F(Copies, NoBytesIsNoWork) {
    write_bytes(first_.base, {42});
    unsigned char untouched = 7;
    EXPECT_OK(cuMemcpyHtoD(first_.base, &untouched, 0));
    EXPECT_OK(cuMemcpyDtoH(&untouched, first_.base, 0));
    EXPECT_EQ(untouched, 7);
    EXPECT_OK(cuMemcpyAsync(second_.base, first_.base, 0, stream_));
    EXPECT_OK(cuMemsetD8Async(first_.base, 1, 0, stream_));
    EXPECT_OK(cuMemsetD32Async(first_.base, 1, 0, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_bytes(first_.base, 1)[0], 42);
}

TEST_F(Copies, BetweenDevicePinnedAndMappedMemory) {
    Buffer buffer(1);
    const auto written = pattern(kBytes, 2);
    std::memcpy(pinned_.data, written.data(), kBytes);
    copy(first_.base, pinned_.base());
    copy(second_.base, first_.base);
    copy(buffer.base() + 11, second_.base);
    EXPECT_EQ(read_bytes(buffer.base() + 11, kBytes), written);
    std::memset(pinned_.data, 0, kBytes);
    copy(pinned_.base(), buffer.base() + 11);
    EXPECT_EQ(std::memcmp(pinned_.data, written.data(), kBytes), 0);
}

TEST_F(Copies, WantDeviceMemoryAndAHostAddress) {
    unsigned char byte = 0;
    EXPECT_INVALID(cuMemcpyDtoH(&byte, 64, 1));
    EXPECT_INVALID(cuMemcpyHtoD(64, &byte, 1));
    EXPECT_INVALID(cuMemcpyDtoH(nullptr, first_.base, 1));
    EXPECT_INVALID(cuMemcpyHtoD(first_.base, nullptr, 1));
    EXPECT_INVALID(cuMemsetD8Async(64, 1, 1, stream_));
    EXPECT_INVALID(cuMemsetD32Async(first_.base + 2, 1, 4, stream_));  // no word's address
}

TEST_F(Copies, FillBytesAndStopWhereTheyShould) {
    write_bytes(first_.base, pattern(kBytes, 6));
    EXPECT_OK(cuMemsetD8Async(first_.base + 1, 0x5A, kBytes - 2, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    auto expected = filled(kBytes, 0x5A);
    expected.front() = pattern(kBytes, 6).front();
    expected.back() = pattern(kBytes, 6).back();
    EXPECT_EQ(read_bytes(first_.base, kBytes), expected);
}

TEST_F(Copies, FillWordsAcrossNeighbours) {
    Memory first(1);
    Memory second(1);
    Range range(2 * unit());
    range.map(first, 0, {0});
    range.map(second, unit(), {0});
    std::vector<unsigned> words(range.size() / 4);
    EXPECT_OK(cuMemsetD32Async(range.base(), 0x11223344u, words.size(), stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_OK(cuMemcpyDtoH(words.data(), range.base(), range.size()));
    EXPECT_EQ(words, std::vector<unsigned>(words.size(), 0x11223344u));
}

}  // namespace
}  // namespace symm::conformance
