// The emulated driver's memory: physical, reserved, mapped, allowed; plain; pointers; dma-buf.

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <limits>
#include <thread>

#include "common/sys/descriptor.hpp"
#include "common/tests/emu_support.hpp"

namespace symm::emu {
namespace {

using Memory = EmulatedDriver;

TEST_F(Memory, KeepsWhatWasWrittenWhenMappedElsewhere) {
    Mapped memory(2 * kBlock);
    ASSERT_EQ(memory.allow_devices(1), CUDA_SUCCESS);
    std::vector<unsigned> in(1234), out(1234);
    for (std::size_t i = 0; i < in.size(); ++i) {
        in[i] = static_cast<unsigned>(i * 2654435761u);
    }
    ASSERT_EQ(emu::cuMemcpyHtoD(memory.pointer + 40, in.data(), in.size() * 4), CUDA_SUCCESS);
    CUdeviceptr second = 0;
    ASSERT_EQ(emu::cuMemAddressReserve(&second, memory.size, 0, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemMap(second, memory.size, 0, memory.handle, 0), CUDA_SUCCESS);
    const CUmemAccessDesc access = access_of(0, kReadWrite);
    ASSERT_EQ(emu::cuMemSetAccess(second, memory.size, &access, 1), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemcpyDtoH(out.data(), second + 40, out.size() * 4), CUDA_SUCCESS);
    EXPECT_EQ(in, out);
    EXPECT_EQ(emu::cuMemUnmap(second, memory.size), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemAddressFree(second, memory.size), CUDA_SUCCESS);
}

TEST_F(Memory, OutlivesItsHandleWhileItIsMapped) {
    const CUmemAllocationProp properties = device_memory();
    CUmemGenericAllocationHandle handle = 0, again = 0;
    CUdeviceptr pointer = 0;
    ASSERT_EQ(emu::cuMemCreate(&handle, kBlock, &properties, 0), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemAddressReserve(&pointer, kBlock, 0, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemMap(pointer, kBlock, 0, handle, 0), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(inventory()["physical allocations"], 1u);
    ASSERT_EQ(emu::cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(pointer + 17)),
              CUDA_SUCCESS);
    EXPECT_EQ(again, handle);
    EXPECT_EQ(emu::cuMemUnmap(pointer, kBlock), CUDA_SUCCESS);
    EXPECT_EQ(inventory()["physical allocations"], 1u);
    EXPECT_EQ(emu::cuMemRelease(again), CUDA_SUCCESS);
    EXPECT_EQ(inventory()["physical allocations"], 0u);
    EXPECT_EQ(emu::cuMemAddressFree(pointer, kBlock), CUDA_SUCCESS);
}

TEST_F(Memory, RefusesToBeMadeWrongly) {
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp properties = device_memory();
    EXPECT_EQ(emu::cuMemCreate(&handle, 0, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemCreate(&handle, kBlock + 4096, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemCreate(&handle, kBlock, &properties, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemCreate(nullptr, kBlock, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemCreate(&handle, kBlock, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemCreate(&handle, std::size_t{2} << 30, &properties, 0),
              CUDA_ERROR_OUT_OF_MEMORY);
    properties.location.id = 4;
    EXPECT_EQ(emu::cuMemCreate(&handle, kBlock, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
    properties = device_memory(0, CU_MEM_HANDLE_TYPE_FABRIC);
    EXPECT_EQ(emu::cuMemCreate(&handle, kBlock, &properties, 0), CUDA_ERROR_NOT_PERMITTED);
    properties = device_memory();
    properties.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    EXPECT_EQ(emu::cuMemCreate(&handle, kBlock, &properties, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, IsAsLargeAsTheDeviceAndNoLarger) {
    std::size_t free_before = 0, total = 0, free_now = 0;
    ASSERT_EQ(emu::cuMemGetInfo(&free_before, &total), CUDA_SUCCESS);
    EXPECT_EQ(free_before, total);
    const CUmemAllocationProp properties = device_memory();
    CUmemGenericAllocationHandle all = 0, one_more = 0;
    ASSERT_EQ(emu::cuMemCreate(&all, total, &properties, 0), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemGetInfo(&free_now, &total), CUDA_SUCCESS);
    EXPECT_EQ(free_now, 0u);
    EXPECT_EQ(emu::cuMemCreate(&one_more, kBlock, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CUdeviceptr plain = 0;
    EXPECT_EQ(emu::cuMemAlloc(&plain, 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(emu::cuMemRelease(all), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemGetInfo(&free_now, &total), CUDA_SUCCESS);
    EXPECT_EQ(free_now, free_before);
}

TEST_F(Memory, ReservationsAreAlignedAndFreedWhole) {
    CUdeviceptr pointer = 0;
    const std::size_t alignment = std::size_t{64} << 20;
    ASSERT_EQ(emu::cuMemAddressReserve(&pointer, 3 * kBlock, alignment, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(pointer % alignment, 0u);
    EXPECT_EQ(emu::cuMemAddressFree(pointer, kBlock), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemAddressFree(pointer + kBlock, 2 * kBlock), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemAddressFree(pointer, 3 * kBlock), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemAddressFree(pointer, 3 * kBlock), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemAddressReserve(&pointer, kBlock + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemAddressReserve(&pointer, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemAddressReserve(&pointer, kBlock, 3 * kBlock, 0, 0),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemAddressReserve(&pointer, kBlock, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
    const std::size_t absurd = std::size_t{1} << 60;
    EXPECT_EQ(emu::cuMemAddressReserve(&pointer, absurd, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Memory, MapsOnlyInsideAReservationAndOntoNothing) {
    const CUmemAllocationProp properties = device_memory();
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr base = 0;
    ASSERT_EQ(emu::cuMemCreate(&handle, 2 * kBlock, &properties, 0), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemAddressReserve(&base, 4 * kBlock, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemMap(base + 3 * kBlock, 2 * kBlock, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemMap(base, 3 * kBlock, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(emu::cuMemMap(base, kBlock + 1, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemMap(base, kBlock, kBlock, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemMap(base, kBlock, 0, handle + 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemMap(kBlock, kBlock, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    ASSERT_EQ(emu::cuMemMap(base + kBlock, 2 * kBlock, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemMap(base, 2 * kBlock, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemMap(base + 2 * kBlock, kBlock, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    ASSERT_EQ(emu::cuMemMap(base, kBlock, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemAddressFree(base, 4 * kBlock), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemUnmap(base, 2 * kBlock), CUDA_ERROR_INVALID_VALUE);  // cuts a mapping
    EXPECT_EQ(emu::cuMemUnmap(base + 2 * kBlock, kBlock), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemUnmap(base + 3 * kBlock, kBlock),
              CUDA_ERROR_INVALID_VALUE);                         // nothing there
    EXPECT_EQ(emu::cuMemUnmap(base, 3 * kBlock), CUDA_SUCCESS);  // both at once
    EXPECT_EQ(emu::cuMemUnmap(base, 3 * kBlock), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemAddressFree(base, 4 * kBlock), CUDA_SUCCESS);
}

TEST_F(Memory, AccessIsKeptForEachDevice) {
    Mapped memory(kBlock);
    char byte = 7;
    EXPECT_EQ(emu::cuMemcpyHtoD(memory.pointer, &byte, 1),
              CUDA_ERROR_INVALID_VALUE);  // no device has access
    ASSERT_EQ(memory.allow({access_of(0, kReadWrite), access_of(2, CU_MEM_ACCESS_FLAGS_PROT_READ)}),
              CUDA_SUCCESS);
    const std::array<unsigned long long, 3> expected = {3, 0, 1};
    for (int device = 0; device < 3; ++device) {
        const CUmemLocation place = location(CU_MEM_LOCATION_TYPE_DEVICE, device);
        unsigned long long flags = 99;
        ASSERT_EQ(emu::cuMemGetAccess(&flags, &place, memory.pointer + 5), CUDA_SUCCESS);
        EXPECT_EQ(flags, expected[device]) << "device " << device;
    }
    EXPECT_EQ(emu::cuMemcpyHtoD(memory.pointer, &byte, 1), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuStreamSynchronize(nullptr), CUDA_SUCCESS);  // the copy has only been staged
    ASSERT_EQ(memory.allow({access_of(0, CU_MEM_ACCESS_FLAGS_PROT_READ)}), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemcpyHtoD(memory.pointer, &byte, 1), CUDA_ERROR_INVALID_VALUE);
    char back = 0;
    EXPECT_EQ(emu::cuMemcpyDtoH(&back, memory.pointer, 1), CUDA_SUCCESS);
    EXPECT_EQ(back, byte);
    EXPECT_EQ(memory.allow({}), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.allow({access_of(77, kReadWrite)}), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(memory.allow({{location(CU_MEM_LOCATION_TYPE_HOST, 0), kReadWrite}}),
              CUDA_ERROR_NOT_SUPPORTED);
    const CUmemAccessDesc all = access_of(0, kReadWrite);
    EXPECT_EQ(emu::cuMemSetAccess(memory.pointer, kBlock / 2, &all, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemSetAccess(memory.pointer, 2 * kBlock, &all, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, OfTheHostIsTheHostsToTouch) {
    Mapped memory(kBlock, host_memory());
    ASSERT_EQ(memory.allow(
                  {{location(CU_MEM_LOCATION_TYPE_HOST, 0), kReadWrite}, access_of(1, kReadWrite)}),
              CUDA_SUCCESS);
    std::memset(memory.as<char>() + 100, 0x5c, 1000);
    std::array<char, 1000> out{};
    ASSERT_EQ(emu::cuMemcpyDtoH(out.data(), memory.pointer + 100, out.size()), CUDA_SUCCESS);
    EXPECT_EQ(out.front(), 0x5c);
    EXPECT_EQ(out.back(), 0x5c);
}

TEST_F(Memory, ComesBackFromItsOwnDescriptor) {
    Mapped memory(kBlock);
    int fd = -1;
    ASSERT_EQ(emu::cuMemExportToShareableHandle(&fd, memory.handle,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_SUCCESS);
    CUmemGenericAllocationHandle imported = 0;
    void* shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
    ASSERT_EQ(emu::cuMemImportFromShareableHandle(&imported, shareable,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_SUCCESS);
    ::close(fd);
    EXPECT_EQ(inventory()["physical allocations"], 1u);
    CUmemAllocationProp properties{};
    ASSERT_EQ(emu::cuMemGetAllocationPropertiesFromHandle(&properties, imported), CUDA_SUCCESS);
    EXPECT_EQ(properties.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    EXPECT_EQ(emu::cuMemRelease(imported), CUDA_SUCCESS);
}

TEST_F(Memory, RefusesStrangersDescriptors) {
    CUmemGenericAllocationHandle handle = 0;
    const auto import = [&](int fd) {
        return emu::cuMemImportFromShareableHandle(
            &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    };
    const UniqueFd file(::memfd_create("stranger", MFD_CLOEXEC));
    EXPECT_EQ(import(file.get()), CUDA_ERROR_INVALID_VALUE);
    ASSERT_EQ(::ftruncate(file.get(), kBlock + 4096), 0);
    EXPECT_EQ(import(file.get()), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(import(-1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(import(987654), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, IsNotExportedUnlessItWasMadeFor) {
    Mapped memory(kBlock, device_memory(0, CU_MEM_HANDLE_TYPE_NONE));
    int fd = -1;
    EXPECT_EQ(emu::cuMemExportToShareableHandle(&fd, memory.handle,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(fd, -1);
}

TEST_F(Memory, IsSeenThroughADmaBuf) {
    Mapped memory(kBlock);
    ASSERT_EQ(memory.allow_devices(1), CUDA_SUCCESS);
    const std::array<unsigned, 3> in = {0xdeadbeef, 1, 2};
    ASSERT_EQ(emu::cuMemcpyHtoD(memory.pointer + 4096, in.data(), sizeof(in)), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    int fd = -1;
    EXPECT_EQ(emu::cuMemGetHandleForAddressRange(&fd, memory.pointer + 1, 4096,
                                                 CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemGetHandleForAddressRange(&fd, memory.pointer, 2 * kBlock,
                                                 CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
              CUDA_ERROR_INVALID_VALUE);
    ASSERT_EQ(emu::cuMemGetHandleForAddressRange(&fd, memory.pointer, kBlock,
                                                 CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
              CUDA_SUCCESS);
    void* view = ::mmap(nullptr, kBlock, PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(view, MAP_FAILED);
    EXPECT_EQ(std::memcmp(static_cast<char*>(view) + 4096, in.data(), sizeof(in)), 0);
    ::munmap(view, kBlock);
    ::close(fd);
}

TEST_F(Memory, PlainAllocationsKnowTheirRange) {
    CUdeviceptr pointer = 0, base = 0;
    std::size_t size = 0;
    ASSERT_EQ(emu::cuMemAlloc(&pointer, 12345), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemGetAddressRange(&base, &size, pointer + 12344), CUDA_SUCCESS);
    EXPECT_EQ(base, pointer);
    EXPECT_EQ(size, 12345u);
    EXPECT_EQ(emu::cuMemGetAddressRange(&base, &size, pointer + 12345), CUDA_ERROR_NOT_FOUND);
    CUipcMemHandle ipc{};
    CUdeviceptr opened = 0;
    EXPECT_EQ(emu::cuIpcGetMemHandle(&ipc, pointer), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuIpcOpenMemHandle(&opened, ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(emu::cuMemFree(pointer + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemFree(pointer), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemFree(0), CUDA_SUCCESS);
}

TEST_F(Memory, OfVmmCannotTravelByLegacyIpc) {
    Mapped memory(kBlock);
    CUipcMemHandle ipc{};
    EXPECT_EQ(emu::cuIpcGetMemHandle(&ipc, memory.pointer), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, CanBeMadeAndUnmadeByManyThreads) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            for (int round = 0; round < 20; ++round) {
                Mapped memory((1 + (t + round) % 3) * kBlock, device_memory(t % 4));
                EXPECT_EQ(memory.allow_devices(4), CUDA_SUCCESS);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

// Tests in processes of their own, with other values of SYMM_EMU_*.

TEST_F(Memory, DISABLED_InAChildWithoutPeers) {
    Mapped memory(kBlock, device_memory(0));
    EXPECT_EQ(memory.allow({access_of(1, kReadWrite)}), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(memory.allow({access_of(0, kReadWrite)}), CUDA_SUCCESS);
    Mapped host(kBlock, host_memory());
    EXPECT_EQ(host.allow({access_of(1, kReadWrite)}), CUDA_SUCCESS);
    int can = -1;
    EXPECT_EQ(emu::cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
    EXPECT_EQ(can, 0);
}

TEST_F(Memory, StaysAtHomeWithoutPeerAccess) {
    expect_passes("Memory.DISABLED_InAChildWithoutPeers", "SYMM_EMU_P2P=0");
}

TEST_F(Memory, DISABLED_InAChildWithFabric) {
    Mapped memory(kBlock, device_memory(0, CU_MEM_HANDLE_TYPE_FABRIC));
    CUmemFabricHandle fabric{};
    ASSERT_EQ(
        emu::cuMemExportToShareableHandle(&fabric, memory.handle, CU_MEM_HANDLE_TYPE_FABRIC, 0),
        CUDA_SUCCESS);
    CUmemGenericAllocationHandle imported = 0;
    ASSERT_EQ(emu::cuMemImportFromShareableHandle(&imported, &fabric, CU_MEM_HANDLE_TYPE_FABRIC),
              CUDA_SUCCESS);
    EXPECT_EQ(imported, memory.handle);
    EXPECT_EQ(emu::cuMemRelease(imported), CUDA_SUCCESS);
    fabric.data[0] ^= 1;
    EXPECT_EQ(emu::cuMemImportFromShareableHandle(&imported, &fabric, CU_MEM_HANDLE_TYPE_FABRIC),
              CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, TravelsByFabricWherePermitted) {
    expect_passes("Memory.DISABLED_InAChildWithFabric", "SYMM_EMU_FABRIC=1");
}

// The child opens the parent's handle, which it gets in hexadecimal.
TEST_F(Memory, DISABLED_InAChildWithAnIpcHandle) {
    const std::string text = std::getenv("SYMM_TEST_HANDLE");
    CUipcMemHandle handle{};
    for (std::size_t i = 0; i < sizeof(handle); ++i) {
        handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
    }
    CUdeviceptr pointer = 0, again = 0;
    ASSERT_EQ(emu::cuIpcOpenMemHandle(&pointer, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_SUCCESS);
    ASSERT_EQ(emu::cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_SUCCESS);
    EXPECT_EQ(pointer, again);
    unsigned value = 0;
    ASSERT_EQ(emu::cuMemcpyDtoH(&value, pointer + 400, 4), CUDA_SUCCESS);
    EXPECT_EQ(value, 0x12345678u);
    ++value;
    ASSERT_EQ(emu::cuMemcpyHtoD(pointer + 404, &value, 4), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuIpcCloseMemHandle(pointer), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuIpcCloseMemHandle(pointer), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuIpcCloseMemHandle(pointer), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, TravelsByLegacyIpcToAnotherProcess) {
    CUdeviceptr pointer = 0;
    ASSERT_EQ(emu::cuMemAlloc(&pointer, 4321), CUDA_SUCCESS);
    unsigned value = 0x12345678;
    ASSERT_EQ(emu::cuMemcpyHtoD(pointer + 400, &value, 4), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    CUipcMemHandle handle{};
    ASSERT_EQ(emu::cuIpcGetMemHandle(&handle, pointer), CUDA_SUCCESS);
    std::string text;
    for (const char byte : handle.reserved) {
        constexpr const char* kDigits = "0123456789abcdef";
        text += kDigits[static_cast<unsigned char>(byte) >> 4];
        text += kDigits[static_cast<unsigned char>(byte) & 15];
    }
    expect_passes("Memory.DISABLED_InAChildWithAnIpcHandle", "SYMM_TEST_HANDLE=" + text);
    ASSERT_EQ(emu::cuMemcpyDtoH(&value, pointer + 404, 4), CUDA_SUCCESS);
    EXPECT_EQ(value, 0x12345679u);
    EXPECT_EQ(emu::cuMemFree(pointer), CUDA_SUCCESS);
}

}  // namespace
}  // namespace symm::emu
