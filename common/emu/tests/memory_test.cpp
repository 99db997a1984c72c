// Memory of the emulated driver: what its answers and limits are where real drivers differ.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/emu/tests/support.hpp"
#include "common/sys/descriptor.hpp"
#include "common/sys/pages.hpp"

namespace symm::emu {
namespace {

using OfDevices = EmulatedDriver;

constexpr auto kPosix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUresult import(CUmemGenericAllocationHandle& handle, int fd) {
    return cuMemImportFromShareableHandle(
        &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)), kPosix);
}

TEST_F(OfDevices, IsOneAllocationWhileItHasAHandleOrAMapping) {
    Memory memory(1);
    Range range(kBlock);
    range.map(memory, 0, {0});
    const CUmemGenericAllocationHandle handle = memory.handle();
    int fd = -1;
    ASSERT_OK(cuMemExportToShareableHandle(&fd, handle, kPosix, 0));
    const UniqueFd exported(fd);
    CUmemGenericAllocationHandle imported = 0;
    ASSERT_OK(import(imported, fd));
    EXPECT_EQ(imported, handle);
    EXPECT_OK(cuMemRelease(imported));
    memory.release();
    EXPECT_INVALID(cuMemRelease(handle));
    EXPECT_EQ(inventory()["physical allocations"], 1u);
    CUmemGenericAllocationHandle again = 0;
    ASSERT_OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range.base() + 17)));
    EXPECT_EQ(again, handle);
    range.unmap();
    EXPECT_EQ(inventory()["physical allocations"], 1u);
    EXPECT_OK(cuMemRelease(again));
    EXPECT_EQ(inventory()["physical allocations"], 0u);
}

// A program may have closed its standard streams, and still write to them.
TEST_F(OfDevices, IsNotOpenAsAStandardStream) {
    const int kept = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 100);
    ::close(STDIN_FILENO);
    bool is_free = false;
    {
        const Memory memory(1);
        const Allocation plain(1);
        int fd = -1;
        EXPECT_OK(cuMemExportToShareableHandle(&fd, memory.handle(), kPosix, 0));
        const UniqueFd exported(fd);
        is_free = ::fcntl(STDIN_FILENO, F_GETFD) < 0;
    }
    if (kept >= 0) {
        ::dup2(kept, STDIN_FILENO);
        ::close(kept);
    }
    EXPECT_TRUE(is_free);
}

TEST_F(OfDevices, IsAsLargeAsTheDeviceAndNoLarger) {
    std::size_t free_before = 0, total = 0, free_now = 0;
    ASSERT_OK(cuMemGetInfo(&free_before, &total));
    EXPECT_EQ(free_before, total);
    {
        const CUmemAllocationProp properties = memory_of(0);
        Memory all(properties, total);
        ASSERT_OK(cuMemGetInfo(&free_now, &total));
        EXPECT_EQ(free_now, 0u);
        CUmemGenericAllocationHandle one_more = 0;
        EXPECT_RESULT(cuMemCreate(&one_more, kBlock, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
        CUdeviceptr plain = 0;
        EXPECT_RESULT(cuMemAlloc(&plain, 1), CUDA_ERROR_OUT_OF_MEMORY);
    }
    Allocation plain(1);
    ASSERT_OK(cuMemGetInfo(&free_now, &total));
    EXPECT_EQ(free_now, free_before - page_bytes());
}

TEST_F(OfDevices, IsMappedOnlyInsideAReservation) {
    Memory memory(2);
    Range range(4 * kBlock);
    const CUdeviceptr base = range.base();
    EXPECT_INVALID(cuMemMap(base + 3 * kBlock, 2 * kBlock, 0, memory.handle(), 0));
    EXPECT_INVALID(cuMemMap(base, kBlock, kBlock, memory.handle(), 0));
    EXPECT_INVALID(cuMemMap(base, kBlock, 0, memory.handle() + 1, 0));
    range.map(memory, kBlock);
    EXPECT_INVALID(cuMemMap(base + 2 * kBlock, kBlock, 0, memory.handle(), 0));
    EXPECT_INVALID(cuMemAddressFree(base, 4 * kBlock));  // something is mapped there
    EXPECT_INVALID(cuMemUnmap(base + 3 * kBlock, kBlock));
}

TEST_F(OfDevices, IsCopiedOnlyWhereADeviceHasAccess) {
    Memory memory(1);
    Range range(kBlock);
    range.map(memory);
    char byte = 7;
    EXPECT_INVALID(cuMemcpyHtoD(range.base(), &byte, 1));
    const CUmemAccessDesc some[] = {access_for(0), access_for(2, kReadOnly)};
    ASSERT_OK(cuMemSetAccess(range.base(), kBlock, some, 2));
    const unsigned long long expected[] = {3, 0, 1};
    for (int device = 0; device < 3; ++device) {
        const CUmemAccessDesc who = access_for(device);
        unsigned long long flags = 99;
        ASSERT_OK(cuMemGetAccess(&flags, &who.location, range.base() + 5));
        EXPECT_EQ(flags, expected[device]) << "device " << device;
    }
    write_bytes(range.base(), {7});
    ASSERT_OK(give_access(range.base(), kBlock, access_for(0, kReadOnly)));
    EXPECT_INVALID(cuMemcpyHtoD(range.base(), &byte, 1));
    EXPECT_EQ(read_bytes(range.base(), 1)[0], 7);
    EXPECT_INVALID(give_access(range.base(), kBlock / 2));
    EXPECT_INVALID(give_access(range.base(), 2 * kBlock));
}

TEST_F(OfDevices, RefusesAStrangersFileOfTheRightSize) {
    const UniqueFd file(::memfd_create("stranger", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(file.get(), kBlock + 4096), 0);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_INVALID(import(handle, file.get()));
}

TEST_F(OfDevices, EndsWhereItsAllocationEnds) {
    Allocation plain(12345);
    CUdeviceptr base = 0;
    EXPECT_OK(cuMemGetAddressRange(&base, nullptr, plain.base + 12344));
    EXPECT_EQ(base, plain.base);
    EXPECT_RESULT(cuMemGetAddressRange(&base, nullptr, plain.base + 12345), CUDA_ERROR_NOT_FOUND);
    EXPECT_OK(cuMemFree(0));
}

}  // namespace
}  // namespace symm::emu
