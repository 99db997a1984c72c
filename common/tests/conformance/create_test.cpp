// cuMemCreate and cuMemRelease.

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Create = Driver;

CUresult create(CUmemGenericAllocationHandle& handle, std::size_t bytes,
                const CUmemAllocationProp& properties) {
    return cuMemCreate(&handle, bytes, &properties, 0);
}

TEST_F(Create, TakesOnlyWholeGranules) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_INVALID(create(handle, 0, memory_of(0)));
    EXPECT_INVALID(create(handle, unit() + 1, memory_of(0)));
    EXPECT_INVALID(create(handle, unit() - 4096, memory_of(0)));
}

TEST_F(Create, RefusesMoreThanTheDeviceHas) {
    std::size_t total = 0;
    ASSERT_OK(cuDeviceTotalMem(&total, device()));
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(create(handle, total / unit() * unit() * 2, memory_of(0)),
                  CUDA_ERROR_OUT_OF_MEMORY);
    Memory memory(1);  // works after a refusal
    EXPECT_NE(memory.handle(), 0u);
}

TEST_F(Create, RefusesUnknownArguments) {
    const CUmemAllocationProp properties = memory_of(0);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_INVALID(cuMemCreate(&handle, unit(), &properties, 1));
    EXPECT_INVALID(cuMemCreate(&handle, unit(), nullptr, 0));
    EXPECT_INVALID(cuMemCreate(nullptr, unit(), &properties, 0));
}

TEST_F(Create, RefusesUnknownProperties) {
    CUmemGenericAllocationHandle handle = 0;
    for (int device : {kNoDevice, -1}) {
        EXPECT_RESULT(create(handle, unit(), memory_of(device)), CUDA_ERROR_INVALID_DEVICE,
                      CUDA_ERROR_INVALID_VALUE);
    }
    CUmemAllocationProp properties = memory_of(0);
    properties.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    EXPECT_INVALID(create(handle, unit(), properties));
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    EXPECT_INVALID(create(handle, unit(), properties));
    properties = memory_of(0);
    properties.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    EXPECT_INVALID(create(handle, unit(), properties));
}

TEST_F(Create, TakesMemoryOfANumaNodeInGranulesToo) {
    SYMM_NEEDS(node() >= 0);
    Memory memory(memory_of_node(node()), unit());
    EXPECT_NE(memory.handle(), 0u);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_INVALID(create(handle, unit() / 2, memory_of_node(node())));
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

}  // namespace
}  // namespace symm::conformance
