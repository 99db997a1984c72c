// cuMemSetAccess and cuMemGetAccess.

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

constexpr auto kNone = CU_MEM_ACCESS_FLAGS_PROT_NONE;
constexpr auto kRead = CU_MEM_ACCESS_FLAGS_PROT_READ;
constexpr auto kReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

using Access = Driver;

unsigned long long access_of(CUdeviceptr at, int device) {
    const CUmemAccessDesc who = access_for(device);
    unsigned long long flags = ~0ull;
    EXPECT_OK(cuMemGetAccess(&flags, &who.location, at));
    return flags;
}

TEST_F(Access, IsNobodysAfterMappingUntilItIsGiven) {
    Memory memory(2);
    Range range(memory.size());
    range.map(memory);
    EXPECT_EQ(access_of(range.base(), 0), kNone);
    for (int round = 0; round < 2; ++round) {
        EXPECT_OK(give_access(range.base(), range.size()));
        EXPECT_EQ(access_of(range.base(), 0), kReadWrite);
        EXPECT_EQ(access_of(range.base() + range.size() - 1, 0), kReadWrite);
    }
}

TEST_F(Access, ComesBackAndFindsTheMemoryUnchanged) {
    Buffer buffer(1);
    const auto written = pattern(5000, 1);
    write_bytes(buffer.base(), written);
    EXPECT_OK(give_access(buffer.base(), buffer.size(), access_for(0, kNone)));
    EXPECT_EQ(access_of(buffer.base(), 0), kNone);
    EXPECT_OK(give_access(buffer.base(), buffer.size()));
    EXPECT_EQ(read_bytes(buffer.base(), 5000), written);
}

TEST_F(Access, BelongsToTheMappingNotToTheMemory) {
    Memory memory(1);
    Range first(unit());
    Range second(unit());
    first.map(memory, 0, {0});
    second.map(memory);
    EXPECT_EQ(access_of(first.base(), 0), kReadWrite);
    EXPECT_EQ(access_of(second.base(), 0), kNone);
    first.unmap();
    first.map(memory);
    EXPECT_EQ(access_of(first.base(), 0), kNone) << "it outlived its mapping";
}

TEST_F(Access, IsReadOnlyWhereTheDeviceCan) {
    Buffer buffer(1);
    const CUresult result = give_access(buffer.base(), buffer.size(), access_for(0, kRead));
    EXPECT_RESULT(result, CUDA_SUCCESS, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_VALUE);
    if (result == CUDA_SUCCESS) {
        EXPECT_EQ(access_of(buffer.base(), 0), kRead);
    }
}

TEST_F(Access, WantsMappedMemoryWithoutHoles) {
    Memory memory(1);
    Range range(2 * unit());
    EXPECT_INVALID(give_access(range.base(), unit()));
    range.map(memory);
    EXPECT_INVALID(give_access(range.base(), 2 * unit()));
    EXPECT_INVALID(give_access(range.base(), 0));
    EXPECT_INVALID(give_access(kNowhere, unit()));
}

TEST_F(Access, WantsToKnowForWhomAndWhich) {
    Buffer buffer(1);
    EXPECT_INVALID(cuMemSetAccess(buffer.base(), buffer.size(), nullptr, 1));
    EXPECT_RESULT(give_access(buffer.base(), buffer.size(), access_for(kNoDevice)),
                  CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_VALUE);
    constexpr auto kOnlyWriting = static_cast<CUmemAccess_flags>(2);
    EXPECT_RESULT(give_access(buffer.base(), buffer.size(), access_for(0, kOnlyWriting)),
                  CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED);
}

// The manual of cuMemSetAccess: HOST_NUMA access is only for memory made with that location type.
TEST_F(Access, OfTheHostToDeviceMemoryIsRefused) {
    SYMM_NEEDS(node() >= 0);
    Buffer buffer(1);
    CUmemAccessDesc host = access_for(0);
    host.location = memory_of_node(node()).location;
    EXPECT_RESULT(give_access(buffer.base(), buffer.size(), host), CUDA_ERROR_INVALID_VALUE,
                  CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Access, CannotBeAskedWhereNothingIsMapped) {
    Range range(unit());
    Buffer buffer(1);
    const CUmemAccessDesc who = access_for(0);
    unsigned long long flags = 0;
    EXPECT_INVALID(cuMemGetAccess(&flags, &who.location, range.base()));
    EXPECT_INVALID(cuMemGetAccess(&flags, &who.location, kNowhere));
    EXPECT_INVALID(cuMemGetAccess(nullptr, &who.location, buffer.base()));
    EXPECT_INVALID(cuMemGetAccess(&flags, nullptr, buffer.base()));
}

}  // namespace
}  // namespace symm::conformance
