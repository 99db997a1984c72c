// cuMemAddressReserve and cuMemAddressFree.

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Reserve = Driver;

constexpr std::size_t kGiB = std::size_t{1} << 30;

CUresult reserve(CUdeviceptr& base, std::size_t bytes, std::size_t alignment = 0) {
    return cuMemAddressReserve(&base, bytes, alignment, 0, 0);
}

TEST_F(Reserve, GivesAddresses) {
    CUdeviceptr base = 0;
    ASSERT_OK(reserve(base, unit()));
    EXPECT_NE(base, 0u);
    EXPECT_OK(cuMemAddressFree(base, unit()));
}

TEST_F(Reserve, AlignsToTheGranularityByItself) {
    Range range(3 * unit());
    EXPECT_EQ(range.base() % unit(), 0u);
}

TEST_F(Reserve, AlignsAsAsked) {
    for (std::size_t alignment : {unit(), 4 * unit(), 32 * unit()}) {
        Range range(unit(), alignment);
        EXPECT_EQ(range.base() % alignment, 0u) << alignment;
    }
}

TEST_F(Reserve, GivesEachCallOtherAddresses) {
    Range first(4 * unit());
    Range second(4 * unit());
    EXPECT_TRUE(first.base() + first.size() <= second.base() ||
                second.base() + second.size() <= first.base());
}

TEST_F(Reserve, TakesFarMoreThanThereIsMemory) {
    std::size_t total = 0;
    ASSERT_OK(cuDeviceTotalMem(&total, device()));
    const std::size_t bytes = (total / kGiB + 8) * kGiB;
    Range range(bytes);
    EXPECT_NE(range.base(), 0u);
}

TEST_F(Reserve, TakesNoMemory) {
    std::size_t before = 0;
    std::size_t after = 0;
    std::size_t total = 0;
    ASSERT_OK(cuMemGetInfo(&before, &total));
    Range range(8 * kGiB);
    ASSERT_OK(cuMemGetInfo(&after, &total));
    EXPECT_LE(before, after + kGiB) << "a reservation took device memory";
}

TEST_F(Reserve, RefusesNoBytes) {
    CUdeviceptr base = 0;
    EXPECT_RESULT(reserve(base, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Reserve, RefusesBrokenPages) {
    CUdeviceptr base = 0;
    EXPECT_RESULT(reserve(base, unit() + 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Reserve, RefusesAnAlignmentThatIsNoPowerOfTwo) {
    CUdeviceptr base = 0;
    EXPECT_RESULT(reserve(base, unit(), 3 * unit()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Reserve, RefusesMoreThanAnAddressHasBits) {
    CUdeviceptr base = 0;
    EXPECT_RESULT(reserve(base, std::size_t{1} << 62), CUDA_ERROR_OUT_OF_MEMORY,
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Reserve, KnowsNoFlags) {
    CUdeviceptr base = 0;
    EXPECT_RESULT(cuMemAddressReserve(&base, unit(), 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Reserve, NeedsSomewhereToGo) {
    EXPECT_RESULT(cuMemAddressReserve(nullptr, unit(), 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Reserve, AHintIsNoCommand) {
    Range taken(unit());
    CUdeviceptr base = 0;
    ASSERT_OK(cuMemAddressReserve(&base, unit(), 0, taken.base(), 0));
    EXPECT_NE(base, taken.base()) << "the address was taken";
    EXPECT_OK(cuMemAddressFree(base, unit()));
}

TEST_F(Reserve, FreeWantsTheWholeReservation) {
    Range range(2 * unit());
    EXPECT_RESULT(cuMemAddressFree(range.base(), unit()), CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuMemAddressFree(range.base() + unit(), unit()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Reserve, FreeWantsAReservation) {
    EXPECT_RESULT(cuMemAddressFree(0, unit()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Reserve, FreeWantsNoMemAllocMemory) {
    CUdeviceptr plain = 0;
    ASSERT_OK(cuMemAlloc(&plain, unit()));
    EXPECT_RESULT(cuMemAddressFree(plain, unit()), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuMemFree(plain));
}

TEST_F(Reserve, FreeingTwiceIsRefused) {
    CUdeviceptr base = 0;
    ASSERT_OK(reserve(base, unit()));
    EXPECT_OK(cuMemAddressFree(base, unit()));
    EXPECT_RESULT(cuMemAddressFree(base, unit()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Reserve, AddressesAreUsedAgain) {
    for (int round = 0; round < 100; ++round) {
        CUdeviceptr base = 0;
        ASSERT_OK(reserve(base, 64 * kGiB)) << "round " << round;
        ASSERT_OK(cuMemAddressFree(base, 64 * kGiB));
    }
}

}  // namespace
}  // namespace symm::conformance
