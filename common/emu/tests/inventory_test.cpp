// The inventory counts each thing from when it is made until it is destroyed.

#include "common/emu/inventory.hpp"

#include <filesystem>

#include "common/emu/tests/support.hpp"

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
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    CUmemGenericAllocationHandle again = 0;
    {
        const Buffer memory(3);
        const Allocation plain(5);
        const Pinned pinned(5);
        const Stream stream;
        const Event event;
        ASSERT_OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(memory.base())));
        ASSERT_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        ASSERT_OK(cuStreamEndCapture(stream, &graph));
        ASSERT_OK(cuGraphInstantiate(&executable, graph, 0));
        EXPECT_EQ(inventory(), (Inventory{{"contexts", 1},
                                          {"events", 1},
                                          {"graph executables", 1},
                                          {"graphs", 1},
                                          {"handle references", 2},
                                          {"mappings", 1},
                                          {"physical allocations", 1},
                                          {"physical bytes", 3 * kBlock},
                                          {"pinned host allocations", 1},
                                          {"plain allocations", 1},
                                          {"reservations", 1},
                                          {"reserved bytes", 3 * kBlock},
                                          {"streams", 1}}));
        EXPECT_EQ(memory_files(), 3u);
    }
    EXPECT_OK(cuMemRelease(again));
    EXPECT_OK(cuGraphExecDestroy(executable));
    EXPECT_OK(cuGraphDestroy(graph));
    EXPECT_EQ(inventory(), before);
    EXPECT_EQ(memory_files(), 0u);
}

TEST_F(Inventories, DropWhatADestroyedContextLeft) {
    const Inventory before = inventory();
    CUcontext context = nullptr;
    ASSERT_OK(cuDevicePrimaryCtxRetain(&context, 3));
    ASSERT_OK(cuCtxPushCurrent(context));
    CUdeviceptr plain = 0;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    ASSERT_OK(cuMemAlloc(&plain, 5));
    ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_OK(cuEventCreate(&event, 0));
    ASSERT_OK(cuMemsetD8Async(plain, 1, 5, stream));
    EXPECT_OK(cuDevicePrimaryCtxRelease(3));
    EXPECT_EQ(inventory(), before);
    // It is still current here.
    EXPECT_RESULT(cuMemAlloc(&plain, 5), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_OK(cuCtxPopCurrent(&context));
    EXPECT_RESULT(cuDevicePrimaryCtxRelease(3), CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace symm::emu
