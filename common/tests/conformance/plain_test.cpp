// Plain allocations of the device and the host, and the older way to share them: cuMemAlloc,
// cuMemHost*, cuMemGetInfo, cuIpc*.

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Plain = Driver;
using Ipc = Driver;

// Device memory from cuMemAlloc, freed by the destructor.
struct Allocation {
    explicit Allocation(std::size_t bytes) { EXPECT_OK(cuMemAlloc(&base, bytes)); }
    ~Allocation() { EXPECT_OK(cuMemFree(base)); }
    CUdeviceptr base = 0;
};

TEST_F(Plain, MemoryIsWrittenAndRead) {
    Allocation memory(12345);
    const auto written = pattern(12345, 1);
    write_bytes(memory.base, written);
    EXPECT_EQ(read_bytes(memory.base, 12345), written);
}

TEST_F(Plain, MemoryIsAlignedForEveryType) {
    Allocation first(1);
    Allocation second(3);
    EXPECT_EQ(first.base % 256, 0u);
    EXPECT_EQ(second.base % 256, 0u);
    EXPECT_NE(first.base, second.base);
}

TEST_F(Plain, NoBytesAreRefused) {
    CUdeviceptr memory = 0;
    EXPECT_RESULT(cuMemAlloc(&memory, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Plain, MoreThanTheDeviceHasIsRefused) {
    std::size_t total = 0;
    ASSERT_OK(cuDeviceTotalMem(&total, device()));
    CUdeviceptr memory = 0;
    EXPECT_RESULT(cuMemAlloc(&memory, 2 * total), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Plain, MemoryNeedsSomewhereToGo) {
    EXPECT_RESULT(cuMemAlloc(nullptr, 64), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Plain, FreeingTwiceIsRefused) {
    CUdeviceptr memory = 0;
    ASSERT_OK(cuMemAlloc(&memory, unit()));
    EXPECT_OK(cuMemFree(memory));
    EXPECT_RESULT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Plain, FreeingFromTheMiddleIsRefused) {
    Allocation memory(4096);
    EXPECT_RESULT(cuMemFree(memory.base + 256), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Plain, FreeTakesNoMappedMemory) {
    Buffer buffer(1);
    EXPECT_RESULT(cuMemFree(buffer.base()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Plain, MemoryIsCounted) {
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    Allocation memory(std::size_t{16} << 20);
    EXPECT_OK(cuMemGetInfo(&free_bytes, &total));
    EXPECT_GE(total, free_bytes + (std::size_t{16} << 20));
}

TEST_F(Plain, PinnedMemoryIsTheHosts) {
    void* pinned = nullptr;
    ASSERT_OK(cuMemHostAlloc(&pinned, 5000, 0));
    const auto written = pattern(5000, 2);
    std::memcpy(pinned, written.data(), 5000);
    EXPECT_EQ(std::memcmp(pinned, written.data(), 5000), 0);
    EXPECT_OK(cuMemFreeHost(pinned));
}

TEST_F(Plain, PinnedMemoryTakesItsFlags) {
    for (unsigned flags :
         {CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP,
          CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_WRITECOMBINED}) {
        void* pinned = nullptr;
        ASSERT_OK(cuMemHostAlloc(&pinned, 4096, flags)) << flags;
        EXPECT_OK(cuMemFreeHost(pinned));
    }
}

TEST_F(Plain, PinnedMemoryKnowsNoOtherFlags) {
    void* pinned = nullptr;
    EXPECT_RESULT(cuMemHostAlloc(&pinned, 4096, 0x8000), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Plain, PinnedMemoryNeedsSomewhereToGo) {
    EXPECT_RESULT(cuMemHostAlloc(nullptr, 4096, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Plain, PinnedMemoryIsFreedOnce) {
    void* pinned = nullptr;
    ASSERT_OK(cuMemHostAlloc(&pinned, 4096, 0));
    EXPECT_OK(cuMemFreeHost(pinned));
    EXPECT_RESULT(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Plain, OnlyPinnedMemoryIsFreedAsSuch) {
    std::vector<char> pageable(4096);
    EXPECT_RESULT(cuMemFreeHost(pageable.data()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Plain, PinnedMemoryIsSeenByTheDevice) {
    void* pinned = nullptr;
    ASSERT_OK(cuMemHostAlloc(&pinned, 777, 0));
    Allocation memory(777);
    const auto written = pattern(777, 3);
    std::memcpy(pinned, written.data(), 777);
    EXPECT_OK(cuMemcpyAsync(memory.base, reinterpret_cast<CUdeviceptr>(pinned), 777, nullptr));
    EXPECT_OK(cuStreamSynchronize(nullptr));
    EXPECT_EQ(read_bytes(memory.base, 777), written);
    EXPECT_OK(cuMemFreeHost(pinned));
}

// Whole pages of the program's own memory, registered (page-locked) until destroyed.
struct Registered {
    explicit Registered(std::size_t bytes) : memory(std::aligned_alloc(4096, bytes)) {
        EXPECT_OK(cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
    }
    ~Registered() {
        EXPECT_OK(cuMemHostUnregister(memory));
        std::free(memory);
    }
    void* memory;
};

TEST_F(Plain, RegisteredMemoryIsSeenByTheDevice) {
    Registered host(8192);
    Allocation memory(5555);
    const auto written = pattern(5555, 4);
    std::memcpy(host.memory, written.data(), 5555);
    CUdeviceptr seen = 0;
    ASSERT_OK(cuMemHostGetDevicePointer(&seen, host.memory, 0));
    EXPECT_OK(cuMemcpyAsync(memory.base, seen, 5555, nullptr));
    EXPECT_OK(cuStreamSynchronize(nullptr));
    EXPECT_EQ(read_bytes(memory.base, 5555), written);
}

TEST_F(Plain, RegisteringTwiceIsRefused) {
    Registered host(8192);
    EXPECT_RESULT(cuMemHostRegister(host.memory, 8192, 0),
                  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
}

TEST_F(Plain, RegisteringNothingIsRefused) {
    EXPECT_RESULT(cuMemHostRegister(nullptr, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    void* memory = std::aligned_alloc(4096, 4096);
    EXPECT_RESULT(cuMemHostRegister(memory, 0, 0), CUDA_ERROR_INVALID_VALUE);
    std::free(memory);
}

TEST_F(Plain, OnlyRegisteredMemoryIsUnregistered) {
    void* memory = std::aligned_alloc(4096, 4096);
    EXPECT_RESULT(cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
                  CUDA_ERROR_INVALID_VALUE);
    std::free(memory);
}

TEST_F(Plain, PinnedMemoryHasOneAddressForAll) {
    void* pinned = nullptr;
    ASSERT_OK(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    CUdeviceptr seen = 0;
    EXPECT_OK(cuMemHostGetDevicePointer(&seen, pinned, 0));
    EXPECT_EQ(seen, reinterpret_cast<CUdeviceptr>(pinned));
    EXPECT_RESULT(cuMemHostGetDevicePointer(&seen, pinned, 7), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuMemFreeHost(pinned));
}

std::string hexadecimal(const CUipcMemHandle& handle) {
    std::string text;
    for (unsigned char byte : handle.reserved) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

TEST_F(Ipc, AnotherProcessReadsAndWrites) {
    Allocation memory(100000);
    write_bytes(memory.base, pattern(100000, 5));
    CUipcMemHandle handle{};
    ASSERT_OK(cuIpcGetMemHandle(&handle, memory.base));
    EXPECT_EQ(run_child("ipc", hexadecimal(handle) + ":100000"), 0);
    EXPECT_EQ(read_bytes(memory.base, 100000), pattern(100000, 6));
}

TEST_F(Ipc, TheProcessItselfCannotOpenItsHandle) {
    Allocation memory(4096);
    CUipcMemHandle handle{};
    ASSERT_OK(cuIpcGetMemHandle(&handle, memory.base));
    CUdeviceptr opened = 0;
    EXPECT_RESULT(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                  CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Ipc, MappedMemoryHasNoSuchHandle) {
    Buffer buffer(1);
    CUipcMemHandle handle{};
    EXPECT_RESULT(cuIpcGetMemHandle(&handle, buffer.base()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Ipc, TheHandleNeedsSomewhereToGo) {
    Allocation memory(4096);
    EXPECT_RESULT(cuIpcGetMemHandle(nullptr, memory.base), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Ipc, OnlyWhatWasOpenedIsClosed) {
    Allocation memory(4096);
    EXPECT_NE(cuIpcCloseMemHandle(memory.base), CUDA_SUCCESS);
}

}  // namespace
}  // namespace symm::conformance
