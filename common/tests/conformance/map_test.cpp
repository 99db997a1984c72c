// cuMemMap and cuMemUnmap.

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Map = Driver;

TEST_F(Map, JoinsMemoryAndAddresses) {
    Memory memory(1);
    Range range(unit());
    ASSERT_OK(cuMemMap(range.base(), unit(), 0, memory.handle(), 0));
    EXPECT_OK(cuMemUnmap(range.base(), unit()));
}

TEST_F(Map, WhatIsWrittenIsRead) {
    Buffer buffer(1);
    const auto written = pattern(buffer.size(), 1);
    write_bytes(buffer.base(), written);
    EXPECT_EQ(read_bytes(buffer.base(), buffer.size()), written);
}

TEST_F(Map, WantsAReservation) {
    Memory memory(1);
    EXPECT_RESULT(cuMemMap(std::size_t{64} << 20, unit(), 0, memory.handle(), 0),
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Map, WantsAReservationThatIsStillThere) {
    Memory memory(1);
    CUdeviceptr base = 0;
    ASSERT_OK(cuMemAddressReserve(&base, unit(), 0, 0, 0));
    ASSERT_OK(cuMemAddressFree(base, unit()));
    EXPECT_RESULT(cuMemMap(base, unit(), 0, memory.handle(), 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Map, RefusesNoBytes) {
    Memory memory(1);
    Range range(unit());
    EXPECT_RESULT(cuMemMap(range.base(), 0, 0, memory.handle(), 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Map, RefusesABrokenSize) {
    Memory memory(1);
    Range range(unit());
    EXPECT_RESULT(cuMemMap(range.base(), unit() - 4096, 0, memory.handle(), 0),
                  CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Map, RefusesABrokenAddress) {
    Memory memory(1);
    Range range(2 * unit());
    EXPECT_RESULT(cuMemMap(range.base() + 4096, unit(), 0, memory.handle(), 0),
                  CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Map, StaysInsideTheReservation) {
    Memory memory(2);
    Range range(2 * unit());
    // According to the manual the whole range must be reserved. Driver 580 checks only the first
    // address.
    const CUresult result = cuMemMap(range.base() + unit(), 2 * unit(), 0, memory.handle(), 0);
    EXPECT_RESULT(result, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS);
    if (result == CUDA_SUCCESS) {
        EXPECT_OK(cuMemUnmap(range.base() + unit(), 2 * unit()));
    }
}

TEST_F(Map, StaysInsideTheMemory) {
    Memory memory(1);
    Range range(2 * unit());
    EXPECT_RESULT(cuMemMap(range.base(), 2 * unit(), 0, memory.handle(), 0),
                  CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Map, NeverOntoAnotherMapping) {
    Memory first(1);
    Memory second(1);
    Range range(unit());
    range.map(first);
    EXPECT_RESULT(cuMemMap(range.base(), unit(), 0, second.handle(), 0), CUDA_ERROR_INVALID_VALUE,
                  CUDA_ERROR_ALREADY_MAPPED);
}

TEST_F(Map, NeverPartlyOntoAnotherMapping) {
    Memory first(1);
    Memory second(2);
    Range range(3 * unit());
    range.map(first, unit());
    EXPECT_RESULT(cuMemMap(range.base(), 2 * unit(), 0, second.handle(), 0),
                  CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_ALREADY_MAPPED);
}

TEST_F(Map, KnowsNoFlags) {
    Memory memory(1);
    Range range(unit());
    EXPECT_RESULT(cuMemMap(range.base(), unit(), 0, memory.handle(), 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Map, ARefusalLeavesTheAddressesFree) {
    Memory memory(1);
    Range range(unit());
    ASSERT_RESULT(cuMemMap(range.base(), 2 * unit(), 0, memory.handle(), 0),
                  CUDA_ERROR_NOT_SUPPORTED);
    range.map(memory, 0, {0});
    const auto written = pattern(1000, 4);
    write_bytes(range.base(), written);
    EXPECT_EQ(read_bytes(range.base(), 1000), written);
}

TEST_F(Map, OneMemoryStandsAtTwoAddresses) {
    Memory memory(1);
    Range first(unit());
    Range second(unit());
    first.map(memory, 0, {0});
    second.map(memory, 0, {0});
    const auto written = pattern(unit(), 5);
    write_bytes(first.base(), written);
    EXPECT_EQ(read_bytes(second.base(), unit()), written);
}

TEST_F(Map, OneMemoryStandsTwiceInOneReservation) {
    Memory memory(1);
    Range range(2 * unit());
    range.map(memory, 0, {0});
    range.map(memory, unit(), {0});
    const auto written = pattern(999, 6);
    write_bytes(range.base() + 77, written);
    EXPECT_EQ(read_bytes(range.base() + unit() + 77, 999), written);
}

TEST_F(Map, NeighboursAreOnePieceToACopy) {
    Memory first(1);
    Memory second(2);
    Range range(3 * unit());
    range.map(first, 0, {0});
    range.map(second, unit(), {0});
    const auto written = pattern(3 * unit(), 7);
    write_bytes(range.base(), written);
    EXPECT_EQ(read_bytes(range.base(), 3 * unit()), written);
}

TEST_F(Map, AReservationMayHaveHoles) {
    Memory first(1);
    Memory second(1);
    Range range(4 * unit());
    range.map(first, 0, {0});
    range.map(second, 3 * unit(), {0});
    const auto written = pattern(4096, 8);
    write_bytes(range.base() + 3 * unit(), written);
    EXPECT_EQ(read_bytes(range.base() + 3 * unit(), 4096), written);
}

TEST_F(Map, MemoryOutlivesItsHandle) {
    Memory memory(1);
    Range range(unit());
    range.map(memory, 0, {0});
    memory.release();
    const auto written = pattern(unit(), 9);
    write_bytes(range.base(), written);
    EXPECT_EQ(read_bytes(range.base(), unit()), written);
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

TEST_F(Map, UnmappedAddressesAreMappedAgain) {
    Range range(unit());
    for (unsigned round = 0; round < 20; ++round) {
        Memory memory(1);
        range.map(memory, 0, {0});
        const auto written = pattern(513, round);
        write_bytes(range.base(), written);
        EXPECT_EQ(read_bytes(range.base(), 513), written) << "round " << round;
        range.unmap();
    }
}

TEST_F(Map, UnmapTakesNoPartOfAMapping) {
    Memory memory(2);
    Range range(2 * unit());
    range.map(memory, 0, {0});
    EXPECT_RESULT(cuMemUnmap(range.base(), unit()), CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuMemUnmap(range.base() + unit(), unit()), CUDA_ERROR_INVALID_VALUE);
    const auto written = pattern(2 * unit(), 11);  // all of it is still mapped
    write_bytes(range.base(), written);
    EXPECT_EQ(read_bytes(range.base(), 2 * unit()), written);
}

TEST_F(Map, UnmapTakesSeveralNeighboursAtOnce) {
    Memory first(1);
    Memory second(2);
    Range range(3 * unit());
    ASSERT_OK(cuMemMap(range.base(), unit(), 0, first.handle(), 0));
    ASSERT_OK(cuMemMap(range.base() + unit(), 2 * unit(), 0, second.handle(), 0));
    EXPECT_OK(cuMemUnmap(range.base(), 3 * unit()));
    EXPECT_OK(cuMemMap(range.base() + unit(), unit(), 0, first.handle(), 0));
    EXPECT_OK(cuMemUnmap(range.base() + unit(), unit()));
}

TEST_F(Map, UnmapPassesOverHoles) {
    Memory first(1);
    Memory second(1);
    Range range(4 * unit());
    ASSERT_OK(cuMemMap(range.base(), unit(), 0, first.handle(), 0));
    ASSERT_OK(cuMemMap(range.base() + 2 * unit(), unit(), 0, second.handle(), 0));
    EXPECT_OK(cuMemUnmap(range.base(), 3 * unit()));
}

TEST_F(Map, UnmapWantsAReservation) {
    EXPECT_RESULT(cuMemUnmap(std::size_t{64} << 20, unit()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Map, UnmapRefusesNoBytes) {
    Buffer buffer(1);
    EXPECT_RESULT(cuMemUnmap(buffer.base(), 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Map, UnmapWantsNoMemAllocMemory) {
    CUdeviceptr plain = 0;
    ASSERT_OK(cuMemAlloc(&plain, unit()));
    EXPECT_RESULT(cuMemUnmap(plain, unit()), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuMemFree(plain));
}

}  // namespace
}  // namespace symm::conformance
