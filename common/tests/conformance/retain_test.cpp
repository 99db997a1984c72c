// From an address back to the memory: cuMemRetainAllocationHandle, cuMemGetAddressRange,
// cuMemGetAllocationPropertiesFromHandle.

#include <vector>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Retain = Driver;
using Properties = Driver;
using AddressOf = Driver;

CUresult retain(CUmemGenericAllocationHandle& handle, CUdeviceptr address) {
    return cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(address));
}

TEST_F(Retain, GivesTheHandleThatWasMapped) {
    Buffer buffer(1);
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(retain(handle, buffer.base()));
    EXPECT_EQ(handle, buffer.memory.handle());
    EXPECT_OK(cuMemRelease(handle));
}

TEST_F(Retain, TakesAnyAddressOfTheMapping) {
    Buffer buffer(2);
    for (std::size_t offset : {std::size_t{1}, unit(), 2 * unit() - 1}) {
        CUmemGenericAllocationHandle handle = 0;
        ASSERT_OK(retain(handle, buffer.base() + offset)) << offset;
        EXPECT_EQ(handle, buffer.memory.handle()) << offset;
        EXPECT_OK(cuMemRelease(handle));
    }
}

TEST_F(Retain, TellsNeighboursApart) {
    Memory first(1);
    Memory second(1);
    Range range(2 * unit());
    range.map(first);
    range.map(second, unit());
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(retain(handle, range.base() + unit()));
    EXPECT_EQ(handle, second.handle());
    EXPECT_OK(cuMemRelease(handle));
}

TEST_F(Retain, IsAReferenceOfItsOwn) {
    Memory memory(1);
    Range first(unit());
    Range second(unit());
    first.map(memory, 0, {0});
    const auto written = pattern(unit(), 1);
    write_bytes(first.base(), written);

    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(retain(handle, first.base()));
    first.unmap();
    memory.release();
    ASSERT_OK(cuMemMap(second.base(), unit(), 0, handle, 0));
    const CUmemAccessDesc access = access_for(0);
    EXPECT_OK(cuMemSetAccess(second.base(), unit(), &access, 1));
    EXPECT_EQ(read_bytes(second.base(), unit()), written);
    EXPECT_OK(cuMemUnmap(second.base(), unit()));
    EXPECT_OK(cuMemRelease(handle));
}

TEST_F(Retain, WantsMappedMemory) {
    Range range(unit());
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(retain(handle, range.base()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Retain, WantsNoMemAllocMemory) {
    CUdeviceptr plain = 0;
    ASSERT_OK(cuMemAlloc(&plain, unit()));
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(retain(handle, plain), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuMemFree(plain));
}

TEST_F(Retain, WantsNoPinnedMemory) {
    void* pinned = nullptr;
    ASSERT_OK(cuMemHostAlloc(&pinned, 4096, 0));
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(cuMemRetainAllocationHandle(&handle, pinned), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuMemFreeHost(pinned));
}

TEST_F(Retain, WantsNoPageableMemory) {
    std::vector<char> pageable(4096);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_RESULT(cuMemRetainAllocationHandle(&handle, pageable.data()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Retain, NeedsSomewhereToGo) {
    Buffer buffer(1);
    EXPECT_RESULT(cuMemRetainAllocationHandle(nullptr, reinterpret_cast<void*>(buffer.base())),
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Properties, AreThoseOfTheCreation) {
    for (unsigned long long types : {0ull, 1ull * CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR}) {
        Memory memory(memory_of(0, types), unit());
        CUmemAllocationProp found{};
        ASSERT_OK(cuMemGetAllocationPropertiesFromHandle(&found, memory.handle()));
        EXPECT_EQ(found.type, CU_MEM_ALLOCATION_TYPE_PINNED);
        EXPECT_EQ(found.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
        EXPECT_EQ(found.location.id, 0);
        EXPECT_EQ(static_cast<unsigned long long>(found.requestedHandleTypes), types);
    }
}

TEST_F(Properties, NameTheDevice) {
    for (int i = 0; i < device_count(); ++i) {
        Memory memory(memory_of(i), unit());
        CUmemAllocationProp found{};
        ASSERT_OK(cuMemGetAllocationPropertiesFromHandle(&found, memory.handle()));
        EXPECT_EQ(found.location.id, i);
    }
}

TEST_F(Properties, NeedSomewhereToGo) {
    Memory memory(1);
    EXPECT_RESULT(cuMemGetAllocationPropertiesFromHandle(nullptr, memory.handle()),
                  CUDA_ERROR_INVALID_VALUE);
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
        ASSERT_OK(cuMemGetAddressRange(&base, &bytes, range.base() + offset)) << offset;
        EXPECT_EQ(base, range.base() + unit()) << offset;
        EXPECT_EQ(bytes, 2 * unit()) << offset;
    }
}

TEST_F(AddressOf, AMappingThatNobodyMayUseIsNoRange) {
    Memory memory(1);
    Range range(unit());
    range.map(memory);
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    EXPECT_RESULT(cuMemGetAddressRange(&base, &bytes, range.base()), CUDA_ERROR_NOT_FOUND);
}

TEST_F(AddressOf, AMemAllocIsItsOwnRange) {
    CUdeviceptr plain = 0;
    ASSERT_OK(cuMemAlloc(&plain, 10000));
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    EXPECT_OK(cuMemGetAddressRange(&base, &bytes, plain + 9999));
    EXPECT_EQ(base, plain);
    EXPECT_GE(bytes, 10000u);
    EXPECT_OK(cuMemFree(plain));
}

TEST_F(AddressOf, EitherHalfOfTheAnswerWillDo) {
    Buffer buffer(1);
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    EXPECT_OK(cuMemGetAddressRange(&base, nullptr, buffer.base() + 5));
    EXPECT_EQ(base, buffer.base());
    EXPECT_OK(cuMemGetAddressRange(nullptr, &bytes, buffer.base() + 5));
    EXPECT_EQ(bytes, buffer.size());
}

TEST_F(AddressOf, NothingHasNoRange) {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    EXPECT_RESULT(cuMemGetAddressRange(&base, &bytes, std::size_t{64} << 20), CUDA_ERROR_NOT_FOUND,
                  CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace symm::conformance
