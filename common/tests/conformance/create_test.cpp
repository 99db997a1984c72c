// cuMemCreate and cuMemRelease.

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Create = Driver;

CUresult create(CUmemGenericAllocationHandle& handle, std::size_t bytes,
                const CUmemAllocationProp& properties) {
    return cuMemCreate(&handle, bytes, &properties, 0);
}

CUmemAllocationProp host_memory(int node) {
    CUmemAllocationProp properties = memory_of(0);
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    properties.location.id = node;
    return properties;
}

TEST_F(Create, GivesAHandle) {
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(create(handle, unit(), memory_of(0)));
    EXPECT_NE(handle, 0u);
    EXPECT_OK(cuMemRelease(handle));
}

TEST_F(Create, GivesEachMemoryAHandleOfItsOwn) {
    Memory first(1);
    Memory second(1);
    EXPECT_NE(first.handle(), second.handle());
}

TEST_F(Create, TakesAnyNumberOfGranules) {
    for (std::size_t units : {1, 2, 3, 5, 16}) {
        Memory memory(units);
        EXPECT_NE(memory.handle(), 0u) << units;
    }
}

TEST_F(Create, WorksOnEveryDevice) {
    for (int i = 0; i < device_count(); ++i) {
        Memory memory(memory_of(i), unit());
        EXPECT_NE(memory.handle(), 0u) << "device " << i;
    }
}

TEST_F(Create, NeedsNoHandleTypes) {
    Memory memory(memory_of(0, 0), unit());
    EXPECT_NE(memory.handle(), 0u);
}

TEST_F(Create, RefusesNoBytes) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(create(handle, 0, memory_of(0)), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Create, RefusesAByteMoreThanAGranule) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(create(handle, unit() + 1, memory_of(0)), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Create, RefusesAPageLessThanAGranule) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(create(handle, unit() - 4096, memory_of(0)), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Create, RefusesMoreThanTheDeviceHas) {
    std::size_t total = 0;
    ASSERT_OK(cuDeviceTotalMem(&total, device()));
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(create(handle, total / unit() * unit() * 2, memory_of(0)),
                  CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Create, WorksAfterARefusal) {
    std::size_t total = 0;
    ASSERT_OK(cuDeviceTotalMem(&total, device()));
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_RESULT(create(handle, total / unit() * unit() * 2, memory_of(0)),
                  CUDA_ERROR_OUT_OF_MEMORY);
    Memory memory(1);
    EXPECT_NE(memory.handle(), 0u);
}

TEST_F(Create, KnowsNoFlags) {
    const CUmemAllocationProp properties = memory_of(0);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(cuMemCreate(&handle, unit(), &properties, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Create, NeedsPropertiesAndSomewhereToGo) {
    const CUmemAllocationProp properties = memory_of(0);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(cuMemCreate(&handle, unit(), nullptr, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuMemCreate(nullptr, unit(), &properties, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Create, NeedsADevice) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(create(handle, unit(), memory_of(9999)), CUDA_ERROR_INVALID_DEVICE,
                  CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(create(handle, unit(), memory_of(-1)), CUDA_ERROR_INVALID_DEVICE,
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Create, NeedsALocation) {
    CUmemAllocationProp properties = memory_of(0);
    properties.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(create(handle, unit(), properties), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Create, NeedsPinnedMemory) {
    CUmemAllocationProp properties = memory_of(0);
    properties.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(create(handle, unit(), properties), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Create, TakesMemoryOfANumaNode) {
    const int node = attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
    if (node < 0) {
        GTEST_SKIP() << "no NUMA node is near the device";
    }
    Memory memory(host_memory(node), unit());
    EXPECT_NE(memory.handle(), 0u);
}

TEST_F(Create, TakesMemoryOfANumaNodeInGranulesToo) {
    const int node = attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
    if (node < 0) {
        GTEST_SKIP() << "no NUMA node is near the device";
    }
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(create(handle, unit() / 2, host_memory(node)), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Create, DoesNotKnowTheCurrentNumaNode) {
    CUmemAllocationProp properties = host_memory(0);
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(create(handle, unit(), properties), CUDA_ERROR_INVALID_VALUE);
}

// The attribute may be 1 without an IMEX channel: only the call shows whether it works.
TEST_F(Create, TakesFabricHandlesOrSaysWhyNot) {
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result = create(handle, unit(), memory_of(0, CU_MEM_HANDLE_TYPE_FABRIC));
    EXPECT_RESULT(result, CUDA_SUCCESS, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_SUPPORTED);
    if (result == CUDA_SUCCESS) {
        EXPECT_OK(cuMemRelease(handle));
    }
}

TEST_F(Create, GivesBackWhatItTook) {
    std::size_t total = 0;
    ASSERT_OK(cuDeviceTotalMem(&total, device()));
    const std::size_t most = total / 4 / unit() * unit();
    for (int round = 0; round < 8; ++round) {  // without release, twice the memory
        Memory memory(memory_of(0), most);
        ASSERT_NE(memory.handle(), 0u) << "round " << round;
    }
}

TEST_F(Create, CountsWhatItTook) {
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    Memory memory(4);
    ASSERT_OK(cuMemGetInfo(&free_bytes, &total));
    EXPECT_GE(total, free_bytes + 4 * unit());
}

}  // namespace
}  // namespace symm::conformance
