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

}  // namespace
}  // namespace symm::emu
