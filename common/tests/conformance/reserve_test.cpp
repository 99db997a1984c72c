// cuMemAddressReserve and cuMemAddressFree.

#include <algorithm>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Reserve = Driver;

constexpr std::size_t kGiB = std::size_t{1} << 30;

CUresult reserve(CUdeviceptr& base, std::size_t bytes, std::size_t alignment = 0) {
    return cuMemAddressReserve(&base, bytes, alignment, 0, 0);
}

TEST_F(Reserve, AlignsAsAskedAndToTheGranularity) {
    for (std::size_t alignment : {std::size_t{0}, unit(), 4 * unit(), 32 * unit()}) {
        Range range(3 * unit(), alignment);
        EXPECT_NE(range.base(), 0u);
        EXPECT_EQ(range.base() % std::max(alignment, unit()), 0u) << alignment;
    }
}

TEST_F(Reserve, RefusesWhatCannotBe) {
    CUdeviceptr base = 0;
    EXPECT_INVALID(reserve(base, 0));
    EXPECT_INVALID(reserve(base, unit() + 1));
    EXPECT_INVALID(reserve(base, unit(), 3 * unit()));  // no power of two
    EXPECT_RESULT(reserve(base, std::size_t{1} << 62), CUDA_ERROR_OUT_OF_MEMORY,
                  CUDA_ERROR_INVALID_VALUE);
    EXPECT_INVALID(cuMemAddressReserve(&base, unit(), 0, 0, 1));
    EXPECT_INVALID(cuMemAddressReserve(nullptr, unit(), 0, 0, 0));
}

TEST_F(Reserve, AHintIsNoCommand) {
    Range taken(unit());
    CUdeviceptr base = 0;
    ASSERT_OK(cuMemAddressReserve(&base, unit(), 0, taken.base(), 0));
    EXPECT_NE(base, taken.base()) << "the address was taken";
    EXPECT_OK(cuMemAddressFree(base, unit()));
}

TEST_F(Reserve, FreeWantsAWholeReservationOnce) {
    Range range(2 * unit());
    EXPECT_INVALID(cuMemAddressFree(range.base(), unit()));
    EXPECT_INVALID(cuMemAddressFree(range.base() + unit(), unit()));
    EXPECT_INVALID(cuMemAddressFree(0, unit()));
    Allocation plain(unit());
    EXPECT_INVALID(cuMemAddressFree(plain.base, unit()));
    CUdeviceptr base = 0;
    ASSERT_OK(reserve(base, unit()));
    EXPECT_OK(cuMemAddressFree(base, unit()));
    EXPECT_INVALID(cuMemAddressFree(base, unit()));
}

}  // namespace
}  // namespace symm::conformance
