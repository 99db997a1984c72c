// From an address back to the memory: cuMemRetainAllocationHandle, cuMemGetAddressRange,
// cuMemGetAllocationPropertiesFromHandle.

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Retain = Driver;
using Properties = Driver;
using AddressOf = Driver;

CUresult retain(CUmemGenericAllocationHandle& handle, CUdeviceptr address) {
    return cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(address));
}

TEST_F(Retain, GivesTheHandleOfTheMappingThatHasTheAddress) {
    Memory first(1);
    Memory second(2);
    Range range(3 * unit());
    range.map(first);
    range.map(second, unit());
    for (std::size_t offset : {std::size_t{0}, unit() - 1, unit(), 3 * unit() - 1}) {
        CUmemGenericAllocationHandle handle = 0;
        ASSERT_OK(retain(handle, range.base() + offset)) << offset;
        EXPECT_EQ(handle, (offset < unit() ? first : second).handle()) << offset;
        EXPECT_OK(cuMemRelease(handle));
    }
}

TEST_F(Retain, WantsMappedMemory) {
    Range range(unit());
    Allocation plain(unit());
    Pinned pinned(4096);
    std::vector<char> pageable(4096);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_INVALID(retain(handle, range.base()));
    EXPECT_INVALID(retain(handle, plain.base));
    EXPECT_INVALID(retain(handle, pinned.base()));
    EXPECT_INVALID(cuMemRetainAllocationHandle(&handle, pageable.data()));
    Buffer buffer(1);
    EXPECT_INVALID(cuMemRetainAllocationHandle(nullptr, reinterpret_cast<void*>(buffer.base())));
}

TEST_F(Properties, AreThoseOfTheCreation) {
    for (int i = 0; i < device_count(); ++i) {
        for (unsigned long long types : {0ull, 1ull * CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR}) {
            Memory memory(memory_of(i, types), unit());
            CUmemAllocationProp found{};
            ASSERT_OK(cuMemGetAllocationPropertiesFromHandle(&found, memory.handle()));
            EXPECT_EQ(found.type, CU_MEM_ALLOCATION_TYPE_PINNED);
            EXPECT_EQ(found.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
            EXPECT_EQ(found.location.id, i);
            EXPECT_EQ(static_cast<unsigned long long>(found.requestedHandleTypes), types);
        }
    }
    Memory memory(1);
    EXPECT_INVALID(cuMemGetAllocationPropertiesFromHandle(nullptr, memory.handle()));
}

TEST_F(AddressOf, AMappingIsItsOwnRange) {
    Memory first(1);
    Memory second(2);
    Range range(4 * unit());
    range.map(first, 0, {0});
    range.map(second, unit(), {0});
    for (std::size_t offset : {unit(), unit() + 1, 3 * unit() - 1}) {
        CUdeviceptr base = 0;
        std::size_t bytes = 0;
        EXPECT_OK(cuMemGetAddressRange(&base, nullptr, range.base() + offset)) << offset;
        EXPECT_OK(cuMemGetAddressRange(nullptr, &bytes, range.base() + offset)) << offset;
        EXPECT_EQ(base, range.base() + unit()) << offset;
        EXPECT_EQ(bytes, 2 * unit()) << offset;
    }
}

TEST_F(AddressOf, NothingAndAMappingThatNobodyMayUseHaveNone) {
    Memory memory(1);
    Range range(unit());
    range.map(memory);
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    EXPECT_RESULT(cuMemGetAddressRange(&base, &bytes, range.base()), CUDA_ERROR_NOT_FOUND);
    EXPECT_RESULT(cuMemGetAddressRange(&base, &bytes, kNowhere), CUDA_ERROR_NOT_FOUND,
                  CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace symm::conformance
