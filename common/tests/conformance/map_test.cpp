// cuMemMap and cuMemUnmap.

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Map = Driver;

CUresult map(CUdeviceptr at, std::size_t bytes, const Memory& memory) {
    return cuMemMap(at, bytes, 0, memory.handle(), 0);
}

TEST_F(Map, WantsAReservationThatIsStillThere) {
    Memory memory(1);
    EXPECT_INVALID(map(kNowhere, unit(), memory));
    CUdeviceptr base = 0;
    ASSERT_OK(cuMemAddressReserve(&base, unit(), 0, 0, 0));
    ASSERT_OK(cuMemAddressFree(base, unit()));
    EXPECT_INVALID(map(base, unit(), memory));
}

TEST_F(Map, RefusesBrokenSizesAndAddresses) {
    Memory memory(1);
    Range range(2 * unit());
    EXPECT_INVALID(map(range.base(), 0, memory));
    EXPECT_RESULT(map(range.base(), unit() - 4096, memory), CUDA_ERROR_INVALID_VALUE,
                  CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_RESULT(map(range.base() + 4096, unit(), memory), CUDA_ERROR_INVALID_VALUE,
                  CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_INVALID(cuMemMap(range.base(), unit(), 0, memory.handle(), 1));
}

TEST_F(Map, StaysInsideTheReservation) {
    Memory memory(2);
    Range range(2 * unit());
    // According to the manual the whole range must be reserved. Driver 580 checks only the first
    // address.
    const CUresult result = map(range.base() + unit(), 2 * unit(), memory);
    EXPECT_RESULT(result, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS);
    if (result == CUDA_SUCCESS) {
        EXPECT_OK(cuMemUnmap(range.base() + unit(), 2 * unit()));
    }
}

TEST_F(Map, StaysInsideTheMemory) {
    Memory memory(1);
    Range range(2 * unit());
    ASSERT_RESULT(map(range.base(), 2 * unit(), memory), CUDA_ERROR_NOT_SUPPORTED);
    range.map(memory, 0, {0});  // the refusal has left the addresses free
    expect_written(range.base(), 1000, 4);
}

TEST_F(Map, NeverOntoAnotherMapping) {
    Memory first(1);
    Memory second(2);
    Range range(3 * unit());
    range.map(first, unit());
    for (const CUdeviceptr at : {range.base() + unit(), range.base()}) {
        EXPECT_RESULT(map(at, 2 * unit(), second), CUDA_ERROR_INVALID_VALUE,
                      CUDA_ERROR_ALREADY_MAPPED);
    }
}

TEST_F(Map, OneMemoryStandsAtSeveralAddresses) {
    Memory memory(1);
    Range one(2 * unit());
    Range other(unit());
    one.map(memory, 0, {0});
    one.map(memory, unit(), {0});
    other.map(memory, 0, {0});
    expect_written(one.base(), unit(), 5, other.base());
    expect_written(one.base() + 77, 999, 6, one.base() + unit() + 77);
}

TEST_F(Map, MemoryOutlivesItsMapping) {
    Memory memory(1);
    Range range(2 * unit());
    range.map(memory, 0, {0});
    const auto written = pattern(unit(), 10);
    write_bytes(range.base(), written);
    range.unmap(0);
    range.map(memory, unit(), {0});
    EXPECT_EQ(read_bytes(range.base() + unit(), unit()), written);
}

TEST_F(Map, UnmapTakesNoPartOfAMapping) {
    Memory memory(2);
    Range range(2 * unit());
    range.map(memory, 0, {0});
    EXPECT_INVALID(cuMemUnmap(range.base(), unit()));
    EXPECT_INVALID(cuMemUnmap(range.base() + unit(), unit()));
    expect_written(range.base(), 2 * unit(), 11);  // all of it is still mapped
}

TEST_F(Map, UnmapTakesSeveralMappingsAndHolesAtOnce) {
    Memory first(1);
    Memory second(2);
    Range range(4 * unit());
    for (const std::size_t second_at : {unit(), 2 * unit()}) {
        ASSERT_OK(map(range.base(), unit(), first));
        ASSERT_OK(map(range.base() + second_at, 2 * unit(), second));
        EXPECT_OK(cuMemUnmap(range.base(), second_at + 2 * unit()));
    }
    EXPECT_OK(map(range.base() + unit(), unit(), first));
    EXPECT_OK(cuMemUnmap(range.base() + unit(), unit()));
}

TEST_F(Map, UnmapWantsMappings) {
    EXPECT_INVALID(cuMemUnmap(kNowhere, unit()));
    Buffer buffer(1);
    EXPECT_INVALID(cuMemUnmap(buffer.base(), 0));
    Allocation plain(unit());
    EXPECT_INVALID(cuMemUnmap(plain.base, unit()));
}

}  // namespace
}  // namespace symm::conformance
