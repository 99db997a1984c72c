// Handles that travel as POSIX descriptors: export, import, in this process and in another.

#include <fcntl.h>
#include <sys/mman.h>

#include <cstdint>

#include "common/sys/descriptor.hpp"
#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Sharing = Driver;

constexpr auto kPosix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

UniqueFd export_memory(const Memory& memory) {
    int fd = -1;
    EXPECT_OK(cuMemExportToShareableHandle(&fd, memory.handle(), kPosix, 0));
    return UniqueFd(fd);
}

CUresult import(CUmemGenericAllocationHandle& handle, int fd) {
    return cuMemImportFromShareableHandle(
        &handle, reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd)), kPosix);
}

// Maps an imported handle and reads it; releases the handle.
std::vector<unsigned char> read_import(CUmemGenericAllocationHandle handle, std::size_t bytes) {
    Range range(bytes);
    EXPECT_OK(cuMemMap(range.base(), bytes, 0, handle, 0));
    const CUmemAccessDesc access = access_for(0);
    EXPECT_OK(cuMemSetAccess(range.base(), bytes, &access, 1));
    auto read = read_bytes(range.base(), bytes);
    EXPECT_OK(cuMemUnmap(range.base(), bytes));
    EXPECT_OK(cuMemRelease(handle));
    return read;
}

TEST_F(Sharing, AnExportIsADescriptor) {
    Memory memory(1);
    const UniqueFd fd = export_memory(memory);
    EXPECT_GE(fd.get(), 0);
    EXPECT_NE(fcntl(fd.get(), F_GETFD), -1);
}

TEST_F(Sharing, EachExportIsADescriptorOfItsOwn) {
    Memory memory(1);
    const UniqueFd first = export_memory(memory);
    const UniqueFd second = export_memory(memory);
    EXPECT_NE(first.get(), second.get());
}

TEST_F(Sharing, AnImportIsTheSameMemory) {
    Buffer buffer(1);
    const auto written = pattern(buffer.size(), 1);
    write_bytes(buffer.base(), written);
    const UniqueFd fd = export_memory(buffer.memory);
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(import(handle, fd.get()));
    EXPECT_EQ(read_import(handle, buffer.size()), written);
}

TEST_F(Sharing, AnImportLeavesTheDescriptorToItsOwner) {
    Memory memory(1);
    const UniqueFd fd = export_memory(memory);
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(import(handle, fd.get()));
    EXPECT_NE(fcntl(fd.get(), F_GETFD), -1);
    EXPECT_OK(cuMemRelease(handle));
}

TEST_F(Sharing, AnImportOutlivesTheDescriptor) {
    Buffer buffer(1);
    const auto written = pattern(buffer.size(), 2);
    write_bytes(buffer.base(), written);
    UniqueFd fd = export_memory(buffer.memory);
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(import(handle, fd.get()));
    fd.reset();
    EXPECT_EQ(read_import(handle, buffer.size()), written);
}

TEST_F(Sharing, ADescriptorKeepsTheMemoryAlive) {
    Memory memory(1);
    const auto written = pattern(unit(), 3);
    {
        Range range(unit());
        range.map(memory, 0, {0});
        write_bytes(range.base(), written);
    }
    const UniqueFd fd = export_memory(memory);
    memory.release();
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(import(handle, fd.get()));
    EXPECT_EQ(read_import(handle, unit()), written);
}

TEST_F(Sharing, AnImportKnowsItsProperties) {
    const int last = device_count() - 1;
    Memory memory(memory_of(last), unit());
    const UniqueFd fd = export_memory(memory);
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_OK(import(handle, fd.get()));
    CUmemAllocationProp found{};
    EXPECT_OK(cuMemGetAllocationPropertiesFromHandle(&found, handle));
    EXPECT_EQ(found.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    EXPECT_EQ(found.location.id, last);
    EXPECT_OK(cuMemRelease(handle));
}

TEST_F(Sharing, WhatWasNotAskedForAtCreationIsRefused) {
    Memory memory(memory_of(0, 0), unit());
    int fd = -1;
    EXPECT_RESULT(cuMemExportToShareableHandle(&fd, memory.handle(), kPosix, 0),
                  CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(Sharing, ExportKnowsNoFlags) {
    Memory memory(1);
    int fd = -1;
    EXPECT_RESULT(cuMemExportToShareableHandle(&fd, memory.handle(), kPosix, 1),
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Sharing, BothNeedSomewhereToGo) {
    Memory memory(1);
    EXPECT_RESULT(cuMemExportToShareableHandle(nullptr, memory.handle(), kPosix, 0),
                  CUDA_ERROR_INVALID_VALUE);
    const UniqueFd fd = export_memory(memory);
    EXPECT_RESULT(
        cuMemImportFromShareableHandle(
            nullptr, reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd.get())), kPosix),
        CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Sharing, ImportRefusesAStrangersDescriptor) {
    const UniqueFd null_device(open("/dev/null", O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(null_device);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_NE(import(handle, null_device.get()), CUDA_SUCCESS);
}

TEST_F(Sharing, ImportRefusesAnEmptyFile) {
    const UniqueFd file(memfd_create("not a GPU's memory", MFD_CLOEXEC));
    ASSERT_TRUE(file);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_NE(import(handle, file.get()), CUDA_SUCCESS);
}

TEST_F(Sharing, ImportRefusesNoDescriptor) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_NE(import(handle, -1), CUDA_SUCCESS);
}

TEST_F(Sharing, AnotherProcessReadsAndWrites) {
    Buffer buffer(1);
    write_bytes(buffer.base(), pattern(buffer.size(), 5));
    const UniqueFd fd = export_memory(buffer.memory);
    EXPECT_EQ(run_child("map", std::to_string(buffer.size()), fd.get()), 0);
    EXPECT_EQ(read_bytes(buffer.base(), buffer.size()), pattern(buffer.size(), 6));
}

TEST_F(Sharing, AnotherProcessReadsWhatItsOwnerNoLongerMaps) {
    Memory memory(2);
    {
        Range range(memory.size());
        range.map(memory, 0, {0});
        write_bytes(range.base(), pattern(memory.size(), 5));
    }
    const UniqueFd fd = export_memory(memory);
    const std::size_t bytes = memory.size();
    memory.release();
    EXPECT_EQ(run_child("map", std::to_string(bytes), fd.get()), 0);
}

TEST_F(Sharing, MemoryOutlivesTheProcessThatReadIt) {
    Buffer buffer(1);
    const UniqueFd fd = export_memory(buffer.memory);
    for (int round = 0; round < 3; ++round) {
        write_bytes(buffer.base(), pattern(buffer.size(), 5));
        EXPECT_EQ(run_child("map", std::to_string(buffer.size()), fd.get()), 0);
    }
    EXPECT_EQ(read_bytes(buffer.base(), buffer.size()), pattern(buffer.size(), 6));
}

}  // namespace
}  // namespace symm::conformance
