// Plain allocations of the device and the host, and the older way to share them: cuMemAlloc,
// cuMemHost*, cuMemGetInfo, cuIpc*.

#include <cstdlib>
#include <cstring>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Plain = Driver;
using Ipc = Driver;

TEST_F(Plain, MemoryIsCountedAndCannotExceedTheDevices) {
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    Allocation memory(std::size_t{16} << 20);
    EXPECT_OK(cuMemGetInfo(&free_bytes, &total));
    EXPECT_GE(total, free_bytes + (std::size_t{16} << 20));
    CUdeviceptr too_much = 0;
    EXPECT_RESULT(cuMemAlloc(&too_much, 2 * total), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_INVALID(cuMemAlloc(&too_much, 0));
    EXPECT_INVALID(cuMemAlloc(nullptr, 64));
}

TEST_F(Plain, OnlyWholeAllocationsAreFreedAndOnce) {
    CUdeviceptr memory = 0;
    ASSERT_OK(cuMemAlloc(&memory, unit()));
    EXPECT_INVALID(cuMemFree(memory + 256));
    EXPECT_OK(cuMemFree(memory));
    EXPECT_INVALID(cuMemFree(memory));
    Buffer mapped(1);
    EXPECT_INVALID(cuMemFree(mapped.base()));
}

TEST_F(Plain, PinnedMemoryIsSeenByHostAndDevice) {
    for (unsigned flags :
         {0, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP,
          CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_WRITECOMBINED}) {
        Pinned pinned(777, flags);
        Allocation memory(777);
        const auto written = pattern(777, 3 + flags);
        std::memcpy(pinned.data, written.data(), 777);
        EXPECT_OK(cuMemcpyAsync(memory.base, pinned.base(), 777, nullptr));
        EXPECT_OK(cuStreamSynchronize(nullptr));
        EXPECT_EQ(read_bytes(memory.base, 777), written);
    }
}

TEST_F(Plain, PinnedMemoryKnowsNoOtherFlags) {
    void* pinned = nullptr;
    EXPECT_INVALID(cuMemHostAlloc(&pinned, 4096, 0x8000));
    EXPECT_INVALID(cuMemHostAlloc(nullptr, 4096, 0));
}

TEST_F(Plain, OnlyPinnedMemoryIsFreedAsSuchAndOnce) {
    void* pinned = nullptr;
    ASSERT_OK(cuMemHostAlloc(&pinned, 4096, 0));
    EXPECT_OK(cuMemFreeHost(pinned));
    EXPECT_INVALID(cuMemFreeHost(pinned));
    std::vector<char> pageable(4096);
    EXPECT_INVALID(cuMemFreeHost(pageable.data()));
}

TEST_F(Plain, PinnedMemoryHasOneAddressForAll) {
    Pinned pinned(4096, CU_MEMHOSTALLOC_DEVICEMAP);
    CUdeviceptr seen = 0;
    EXPECT_OK(cuMemHostGetDevicePointer(&seen, pinned.data, 0));
    EXPECT_EQ(seen, pinned.base());
    EXPECT_INVALID(cuMemHostGetDevicePointer(&seen, pinned.data, 7));
}

TEST_F(Plain, RegisteredMemoryIsSeenByTheDevice) {
    constexpr std::size_t kBytes = 8192;
    const std::unique_ptr<void, void (*)(void*)> host(std::aligned_alloc(4096, kBytes), std::free);
    EXPECT_RESULT(cuMemHostUnregister(host.get()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
                  CUDA_ERROR_INVALID_VALUE);
    EXPECT_INVALID(cuMemHostRegister(nullptr, kBytes, 0));
    EXPECT_INVALID(cuMemHostRegister(host.get(), 0, 0));
    ASSERT_OK(cuMemHostRegister(host.get(), kBytes, CU_MEMHOSTREGISTER_DEVICEMAP));
    EXPECT_RESULT(cuMemHostRegister(host.get(), kBytes, 0),
                  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    Allocation memory(5555);
    const auto written = pattern(5555, 4);
    std::memcpy(host.get(), written.data(), 5555);
    CUdeviceptr seen = 0;
    EXPECT_OK(cuMemHostGetDevicePointer(&seen, host.get(), 0));
    EXPECT_OK(cuMemcpyAsync(memory.base, seen, 5555, nullptr));
    EXPECT_OK(cuStreamSynchronize(nullptr));
    EXPECT_EQ(read_bytes(memory.base, 5555), written);
    EXPECT_OK(cuMemHostUnregister(host.get()));
}

TEST_F(Ipc, TheProcessItselfCannotOpenItsHandle) {
    Allocation memory(4096);
    CUipcMemHandle handle{};
    ASSERT_OK(cuIpcGetMemHandle(&handle, memory.base));
    CUdeviceptr opened = 0;
    EXPECT_RESULT(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                  CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_NE(cuIpcCloseMemHandle(memory.base), CUDA_SUCCESS);
    EXPECT_INVALID(cuIpcGetMemHandle(nullptr, memory.base));
    Buffer mapped(1);
    EXPECT_INVALID(cuIpcGetMemHandle(&handle, mapped.base()));
}

}  // namespace
}  // namespace symm::conformance
