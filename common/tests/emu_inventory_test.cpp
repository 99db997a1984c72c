// The inventory counts each thing from when it is made until it is destroyed.

#include "common/emu/inventory.hpp"

#include <filesystem>
#include <string>

#include "common/tests/emu_support.hpp"

namespace symm::emu {
namespace {

using Inventories = EmulatedDriver;

// The number of descriptors of the emulated driver's files.
std::size_t memory_files() {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
        count += target.find("symm-") != std::string::npos ? 1 : 0;
    }
    return count;
}

TEST_F(Inventories, CountEveryKindOfThing) {
    const Inventory before = inventory();
    EXPECT_EQ(before, (Inventory{{"contexts", 1}}));
    CUdeviceptr plain = 0;
    void* pinned = nullptr;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    CUmemGenericAllocationHandle again = 0;
    {
        Mapped memory(3 * kBlock);
        ASSERT_EQ(emu::cuMemRetainAllocationHandle(&again, memory.as<void>()), CUDA_SUCCESS);
        ASSERT_EQ(emu::cuMemAlloc(&plain, 5), CUDA_SUCCESS);
        ASSERT_EQ(emu::cuMemHostAlloc(&pinned, 5, 0), CUDA_SUCCESS);
        ASSERT_EQ(emu::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        ASSERT_EQ(emu::cuEventCreate(&event, 0), CUDA_SUCCESS);
        ASSERT_EQ(emu::cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
        ASSERT_EQ(emu::cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
        ASSERT_EQ(emu::cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);

        Inventory expected = before;
        expected["physical allocations"] += 1;
        expected["physical bytes"] += 3 * kBlock;
        expected["handle references"] += 2;
        expected["reservations"] += 1;
        expected["reserved bytes"] += 3 * kBlock;
        expected["mappings"] += 1;
        expected["plain allocations"] += 1;
        expected["pinned host allocations"] += 1;
        expected["streams"] += 1;
        expected["events"] += 1;
        expected["graphs"] += 1;
        expected["graph executables"] += 1;
        EXPECT_EQ(inventory(), expected);
        EXPECT_EQ(memory_files(), 3u);
    }
    EXPECT_EQ(emu::cuMemRelease(again), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemFree(plain), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemFreeHost(pinned), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuGraphExecDestroy(executable), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuGraphDestroy(graph), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuEventDestroy(event), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuStreamDestroy(stream), CUDA_SUCCESS);
    EXPECT_EQ(inventory(), before);
    EXPECT_EQ(memory_files(), 0u);
}

TEST_F(Inventories, DropWhatADestroyedContextLeft) {
    const Inventory before = inventory();
    CUcontext context = nullptr;
    ASSERT_EQ(emu::cuDevicePrimaryCtxRetain(&context, 3), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuCtxPushCurrent(context), CUDA_SUCCESS);
    CUdeviceptr plain = 0;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    ASSERT_EQ(emu::cuMemAlloc(&plain, 5), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuEventCreate(&event, 0), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemsetD8Async(plain, 1, 5, stream), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuDevicePrimaryCtxRelease(3), CUDA_SUCCESS);
    EXPECT_EQ(inventory(), before);
    EXPECT_EQ(emu::cuMemAlloc(&plain, 5), CUDA_ERROR_CONTEXT_IS_DESTROYED);  // still current here
    EXPECT_EQ(emu::cuCtxPopCurrent(&context), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuDevicePrimaryCtxRelease(3), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Inventories, AreTheSameAfterAThousandRounds) {
    const Inventory before = inventory();
    for (int round = 0; round < 1000; ++round) {
        Mapped memory(kBlock, device_memory(round % 4));
        ASSERT_EQ(memory.allow_devices(4), CUDA_SUCCESS);
    }
    EXPECT_EQ(inventory(), before);
    EXPECT_EQ(memory_files(), 0u);
}

}  // namespace
}  // namespace symm::emu
