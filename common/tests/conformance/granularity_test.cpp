// cuMemGetAllocationGranularity.

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Granularity = Driver;

constexpr auto kMinimum = CU_MEM_ALLOC_GRANULARITY_MINIMUM;

void expect_two_mebibytes(const CUmemAllocationProp& properties) {
    for (const auto which : {kMinimum, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED}) {
        std::size_t bytes = 0;
        EXPECT_OK(cuMemGetAllocationGranularity(&bytes, &properties, which));
        EXPECT_EQ(bytes, std::size_t{2} << 20);
    }
}

TEST_F(Granularity, IsTwoMebibytesOfEveryMemory) {
    for (int i = 0; i < device_count(); ++i) {
        expect_two_mebibytes(memory_of(i));
    }
    expect_two_mebibytes(memory_of(0, 0));
    SYMM_NEEDS(node() >= 0);
    expect_two_mebibytes(memory_of_node(node()));
}

// Driver 580 checks the properties only in cuMemCreate. This call accepts any.
TEST_F(Granularity, NeedsNoRightProperties) {
    std::size_t bytes = 0;
    CUmemAllocationProp properties = memory_of(0);
    properties.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    EXPECT_OK(cuMemGetAllocationGranularity(&bytes, &properties, kMinimum));
    properties = memory_of(0);
    properties.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    EXPECT_OK(cuMemGetAllocationGranularity(&bytes, &properties, kMinimum));
    for (int device : {kNoDevice, -1}) {
        properties = memory_of(device);
        EXPECT_OK(cuMemGetAllocationGranularity(&bytes, &properties, kMinimum));
    }
}

TEST_F(Granularity, NeedsPropertiesAndSomewhereToGo) {
    const CUmemAllocationProp properties = memory_of(0);
    std::size_t bytes = 0;
    EXPECT_INVALID(cuMemGetAllocationGranularity(nullptr, &properties, kMinimum));
    EXPECT_INVALID(cuMemGetAllocationGranularity(&bytes, nullptr, kMinimum));
}

}  // namespace
}  // namespace symm::conformance
