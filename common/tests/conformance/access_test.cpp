// cuMemSetAccess and cuMemGetAccess.

#include <cstring>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Access = Driver;

CUresult set_access(CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc& access) {
    return cuMemSetAccess(at, bytes, &access, 1);
}

unsigned long long access_of(CUdeviceptr at, int device) {
    const CUmemAccessDesc who = access_for(device);
    unsigned long long flags = ~0ull;
    EXPECT_OK(cuMemGetAccess(&flags, &who.location, at));
    return flags;
}

TEST_F(Access, IsNobodysAfterMapping) {
    Memory memory(1);
    Range range(unit());
    range.map(memory);
    EXPECT_EQ(access_of(range.base(), 0), CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

TEST_F(Access, IsGiven) {
    Memory memory(1);
    Range range(unit());
    range.map(memory);
    EXPECT_OK(set_access(range.base(), unit(), access_for(0)));
    EXPECT_EQ(access_of(range.base(), 0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

TEST_F(Access, IsAnsweredForEveryAddress) {
    Buffer buffer(2);
    EXPECT_EQ(access_of(buffer.base() + buffer.size() - 1, 0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

TEST_F(Access, MayBeGivenTwice) {
    Buffer buffer(1);
    EXPECT_OK(set_access(buffer.base(), buffer.size(), access_for(0)));
    EXPECT_EQ(access_of(buffer.base(), 0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

TEST_F(Access, IsTakenAway) {
    Buffer buffer(1);
    EXPECT_OK(
        set_access(buffer.base(), buffer.size(), access_for(0, CU_MEM_ACCESS_FLAGS_PROT_NONE)));
    EXPECT_EQ(access_of(buffer.base(), 0), CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

TEST_F(Access, ComesBackAndFindsTheMemoryUnchanged) {
    Buffer buffer(1);
    const auto written = pattern(5000, 1);
    write_bytes(buffer.base(), written);
    EXPECT_OK(
        set_access(buffer.base(), buffer.size(), access_for(0, CU_MEM_ACCESS_FLAGS_PROT_NONE)));
    EXPECT_OK(set_access(buffer.base(), buffer.size(), access_for(0)));
    EXPECT_EQ(read_bytes(buffer.base(), 5000), written);
}

TEST_F(Access, DoesNotOutliveItsMapping) {
    Memory memory(1);
    Range range(unit());
    range.map(memory, 0, {0});
    range.unmap();
    range.map(memory);
    EXPECT_EQ(access_of(range.base(), 0), CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

TEST_F(Access, BelongsToTheMappingNotToTheMemory) {
    Memory memory(1);
    Range first(unit());
    Range second(unit());
    first.map(memory, 0, {0});
    second.map(memory);
    EXPECT_EQ(access_of(first.base(), 0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    EXPECT_EQ(access_of(second.base(), 0), CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

TEST_F(Access, IsGivenToNeighboursInOneCall) {
    Memory first(1);
    Memory second(2);
    Range range(3 * unit());
    range.map(first);
    range.map(second, unit());
    EXPECT_OK(set_access(range.base(), 3 * unit(), access_for(0)));
    EXPECT_EQ(access_of(range.base(), 0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    EXPECT_EQ(access_of(range.base() + 2 * unit(), 0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

TEST_F(Access, IsReadOnlyWhereTheDeviceCan) {
    Buffer buffer(1);
    const CUresult result =
        set_access(buffer.base(), buffer.size(), access_for(0, CU_MEM_ACCESS_FLAGS_PROT_READ));
    EXPECT_RESULT(result, CUDA_SUCCESS, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_VALUE);
    if (result == CUDA_SUCCESS) {
        EXPECT_EQ(access_of(buffer.base(), 0), CU_MEM_ACCESS_FLAGS_PROT_READ);
    }
}

TEST_F(Access, WantsMappedMemory) {
    Range range(unit());
    EXPECT_RESULT(set_access(range.base(), unit(), access_for(0)), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Access, WantsMemoryWithoutHoles) {
    Memory memory(1);
    Range range(2 * unit());
    range.map(memory);
    EXPECT_RESULT(set_access(range.base(), 2 * unit(), access_for(0)), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Access, WantsAReservation) {
    EXPECT_RESULT(set_access(std::size_t{64} << 20, unit(), access_for(0)),
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Access, RefusesNoBytes) {
    Buffer buffer(1);
    EXPECT_RESULT(set_access(buffer.base(), 0, access_for(0)), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Access, WantsToKnowForWhom) {
    Buffer buffer(1);
    EXPECT_RESULT(cuMemSetAccess(buffer.base(), buffer.size(), nullptr, 1),
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Access, NeedsADevice) {
    Buffer buffer(1);
    EXPECT_RESULT(set_access(buffer.base(), buffer.size(), access_for(9999)),
                  CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Access, KnowsNoWritingWithoutReading) {
    Buffer buffer(1);
    EXPECT_RESULT(
        set_access(buffer.base(), buffer.size(), access_for(0, static_cast<CUmemAccess_flags>(2))),
        CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED);
}

// The manual of cuMemSetAccess: HOST_NUMA access is only for memory made with that location type.
TEST_F(Access, OfTheHostToDeviceMemoryIsRefused) {
    const int node = attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
    if (node < 0) {
        GTEST_SKIP() << "no NUMA node is near the device";
    }
    Buffer buffer(1);
    CUmemAccessDesc host = access_for(0);
    host.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    host.location.id = node;
    EXPECT_RESULT(set_access(buffer.base(), buffer.size(), host), CUDA_ERROR_INVALID_VALUE,
                  CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Access, OfHostAndDeviceToHostMemoryMeets) {
    const int node = attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
    if (node < 0) {
        GTEST_SKIP() << "no NUMA node is near the device";
    }
    CUmemAllocationProp properties = memory_of(0);
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    properties.location.id = node;
    Memory memory(properties, unit());
    Range range(unit());
    range.map(memory);
    CUmemAccessDesc both[2] = {access_for(0), access_for(0)};
    both[1].location = properties.location;
    ASSERT_OK(cuMemSetAccess(range.base(), unit(), both, 2));

    const auto written = pattern(unit(), 2);
    std::memcpy(reinterpret_cast<void*>(range.base()), written.data(), written.size());
    EXPECT_EQ(read_bytes(range.base(), unit()), written);
    const auto answer = pattern(unit(), 3);
    write_bytes(range.base(), answer);
    EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(range.base()), answer.data(), answer.size()), 0);
}

TEST_F(Access, OfSeveralDevicesInOneCall) {
    if (!peers()) {
        GTEST_SKIP() << "needs two devices that are peers";
    }
    Memory memory(1);
    Range range(unit());
    range.map(memory);
    const CUmemAccessDesc both[2] = {access_for(0), access_for(1)};
    EXPECT_OK(cuMemSetAccess(range.base(), unit(), both, 2));
    EXPECT_EQ(access_of(range.base(), 0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    EXPECT_EQ(access_of(range.base(), 1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

TEST_F(Access, OfOneDeviceStaysWhenAnotherComes) {
    if (!peers()) {
        GTEST_SKIP() << "needs two devices that are peers";
    }
    Buffer buffer(1);
    EXPECT_EQ(access_of(buffer.base(), 1), CU_MEM_ACCESS_FLAGS_PROT_NONE);
    EXPECT_OK(set_access(buffer.base(), buffer.size(), access_for(1)));
    EXPECT_EQ(access_of(buffer.base(), 0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    EXPECT_EQ(access_of(buffer.base(), 1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

TEST_F(Access, CannotBeAskedWhereNothingIsMapped) {
    Range range(unit());
    const CUmemAccessDesc who = access_for(0);
    unsigned long long flags = 0;
    EXPECT_RESULT(cuMemGetAccess(&flags, &who.location, range.base()), CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuMemGetAccess(&flags, &who.location, std::size_t{64} << 20),
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Access, AskingNeedsAQuestionAndSomewhereToGo) {
    Buffer buffer(1);
    const CUmemAccessDesc who = access_for(0);
    unsigned long long flags = 0;
    EXPECT_RESULT(cuMemGetAccess(nullptr, &who.location, buffer.base()), CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuMemGetAccess(&flags, nullptr, buffer.base()), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace symm::conformance
