// cuMemGetAllocationGranularity.

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Granularity = Driver;

CUresult ask(std::size_t& bytes, const CUmemAllocationProp& properties,
             CUmemAllocationGranularity_flags which = CU_MEM_ALLOC_GRANULARITY_MINIMUM) {
    return cuMemGetAllocationGranularity(&bytes, &properties, which);
}

TEST_F(Granularity, IsTwoMebibytesOfDeviceMemory) {
    std::size_t minimum = 0;
    std::size_t recommended = 0;
    EXPECT_OK(ask(minimum, memory_of(0)));
    EXPECT_OK(ask(recommended, memory_of(0), CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    EXPECT_EQ(minimum, std::size_t{2} << 20);
    EXPECT_EQ(recommended, std::size_t{2} << 20);
}

TEST_F(Granularity, IsTheSameForEveryHandleType) {
    std::size_t plain = 0;
    std::size_t shareable = 0;
    EXPECT_OK(ask(plain, memory_of(0, 0)));
    EXPECT_OK(ask(shareable, memory_of(0)));
    EXPECT_EQ(plain, shareable);
}

TEST_F(Granularity, ExistsForEveryDevice) {
    for (int i = 0; i < device_count(); ++i) {
        std::size_t bytes = 0;
        EXPECT_OK(ask(bytes, memory_of(i)));
        EXPECT_GT(bytes, 0u);
        EXPECT_EQ(bytes & (bytes - 1), 0u) << "not a power of two: " << bytes;
    }
}

TEST_F(Granularity, ExistsForHostMemoryOfANumaNode) {
    const int node = attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
    if (node < 0) {
        GTEST_SKIP() << "no NUMA node is near the device";
    }
    CUmemAllocationProp properties = memory_of(0);
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    properties.location.id = node;
    std::size_t bytes = 0;
    EXPECT_OK(ask(bytes, properties));
    EXPECT_EQ(bytes, std::size_t{2} << 20);
}

// Driver 580 checks the properties only in cuMemCreate. This call accepts any.

TEST_F(Granularity, DoesNotLookForTheDevice) {
    std::size_t bytes = 0;
    EXPECT_OK(ask(bytes, memory_of(9999)));
    EXPECT_OK(ask(bytes, memory_of(-1)));
    EXPECT_EQ(bytes, std::size_t{2} << 20);
}

TEST_F(Granularity, DoesNotNeedALocation) {
    CUmemAllocationProp properties = memory_of(0);
    properties.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    std::size_t bytes = 0;
    EXPECT_OK(ask(bytes, properties));
}

TEST_F(Granularity, DoesNotNeedPinnedMemory) {
    CUmemAllocationProp properties = memory_of(0);
    properties.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    std::size_t bytes = 0;
    EXPECT_OK(ask(bytes, properties));
}

TEST_F(Granularity, NeedsPropertiesAndSomewhereToGo) {
    const CUmemAllocationProp properties = memory_of(0);
    std::size_t bytes = 0;
    EXPECT_RESULT(
        cuMemGetAllocationGranularity(nullptr, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuMemGetAllocationGranularity(&bytes, nullptr, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                  CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace symm::conformance
