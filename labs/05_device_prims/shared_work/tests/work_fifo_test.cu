// Batches of work: executed item by item, from parameters and through the FIFO; and errors.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "common/cuda/device.hpp"
#include "common/cuda/graph.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "labs/05_device_prims/abort_barrier.hpp"
#include "labs/05_device_prims/shared_work/work_fifo.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

enum class Operation : std::uint32_t { kFill, kScale, kWait, kLeave };

// An item: what to do with elements `begin` to `end` - 1. Its size is not a power of two.
struct alignas(16) Item {
    std::uint64_t* output;
    std::uint64_t number;  // of the item, so that what two items store differs
    std::uint64_t factor;
    Operation operation;
    std::uint32_t begin;
    std::uint32_t end;

    __host__ __device__ void execute(std::uint32_t i) const {
        if (i >= begin) {
            output[i] =
                operation == Operation::kFill ? (number << 32) + i : output[i] * factor + number;
        }
    }
};
static_assert(sizeof(Item) == 48);

constexpr unsigned kRoom = 3;  // items in shared memory at a time
constexpr unsigned kThreads = 8;
constexpr std::uint32_t kElements = 1000;
constexpr std::uint64_t kPoison = 0xa5a5a5a5a5a5a5a5U;

struct ExecuteKernel {
    WorkBatch<Item> batch;
    const std::uint32_t* gate;  // kWait waits until it is 1
    simt::Timeout timeout;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        simt::Waiter waiter(timeout);
        AbortBarrier barrier(block);
        Item(&items)[kRoom] = *block.shared<Item[kRoom]>();
        batch.load(block, items);
        block.sync();
        batch.for_each(block, items, [&](const Item& item) {
            if (item.operation == Operation::kWait) {
                return barrier.sync(wait_signal(waiter, gate, {simt::Wait::kSignal, 0, 0, 1}));
            }
            // Each element belongs to one thread, so no syncs are needed between items.
            for (auto i = static_cast<std::uint32_t>(block.grid_rank()); i < item.end;
                 i += static_cast<std::uint32_t>(block.grid_size())) {
                item.execute(i);
            }
            return item.operation != Operation::kLeave;
        });
    }
};

class WorkFifoTest : public ::testing::Test {
protected:
    void SetUp() override { std::fill_n(output(), kElements, kPoison); }
    std::uint64_t* output() const { return memory_.as<std::uint64_t>(); }

    // The next `count` items. Neighbours overlap, so their order counts.
    std::vector<Item> next_items(std::size_t count) {
        std::vector<Item> items;
        for (; items.size() < count; ++number_) {
            const auto begin = static_cast<std::uint32_t>(number_ * 37 % (kElements - 101));
            const auto length = static_cast<std::uint32_t>(number_ % 8 == 0 ? 0 : number_ % 101);
            items.push_back({output(), number_, 2 * number_ + 1,
                             number_ % 3 == 0 ? Operation::kFill : Operation::kScale, begin,
                             begin + length});
        }
        return items;
    }
    // Launches the items, and executes them on the host for comparison.
    void launch_items(WorkFifo<Item>& fifo, const std::vector<Item>& items, unsigned blocks) {
        const auto batch = fifo.store(items, stream_.get());
        launch(stream_.get(), blocks, kThreads,
               ExecuteKernel{batch, gate_.as<std::uint32_t>(), timeout_.timeout()},
               kRoom * sizeof(Item));
        execute_here(items);
    }
    void execute_here(const std::vector<Item>& items) {
        for (Item item : items) {
            if (item.operation == Operation::kLeave) {
                return;
            }
            item.output = expected_.data();
            for (std::uint32_t i = 0; i < item.end; ++i) {
                item.execute(i);
            }
        }
    }
    void expect_all() {
        timeout_.synchronize(stream_, "the kernels");
        for (std::uint32_t i = 0; i < kElements; ++i) {
            ASSERT_EQ(output()[i], expected_[i]) << "element " << i << " after item " << number_;
        }
    }

    Device device_{0};
    Stream stream_;
    KernelTimeout timeout_;
    PinnedMemory memory_{kElements * sizeof(std::uint64_t)};
    PinnedMemory gate_{sizeof(std::uint32_t)};
    std::vector<std::uint64_t> expected_ = std::vector<std::uint64_t>(kElements, kPoison);
    std::uint64_t number_ = 1;
};

constexpr std::uint32_t kArgs = WorkBatch<Item>::kArgs;

TEST_F(WorkFifoTest, ExecutesItemsFromParameters) {
    WorkFifo<Item> fifo({.entries = 1, .channels = 3});
    for (const std::size_t count : {0U, 1U, 2U, 3U, 4U, 7U, kArgs - 1, kArgs}) {
        launch_items(fifo, next_items(count), 3);
        expect_all();
    }
}

TEST_F(WorkFifoTest, ExecutesItemsFromTheRing) {
    WorkFifo<Item> fifo({.entries = 128, .channels = 3});
    for (const std::size_t count : {kArgs + 1, kArgs + 2, 100U, 127U, 128U}) {
        launch_items(fifo, next_items(count), 3);
        expect_all();
    }
}

// Many launches through a ring that holds two or three of them: the host has to wait.
TEST_F(WorkFifoTest, WaitsForFreeEntries) {
    WorkFifo<Item> fifo({.entries = 8, .channels = 4, .args = 0});
    for (unsigned call = 0; call < 60; ++call) {
        launch_items(fifo, next_items(1 + call % 8), 4);
    }
    expect_all();
}

TEST_F(WorkFifoTest, CountsOnAtTheWrapOfItsCounters) {
    WorkFifo<Item> fifo({.entries = 16, .channels = 2, .args = 0, .first = 0xffffffecU});
    for (unsigned call = 0; call < 10; ++call) {
        launch_items(fifo, next_items(9), 2);
    }
    expect_all();
}

TEST_F(WorkFifoTest, ServesLaunchesOfFewerBlocks) {
    WorkFifo<Item> fifo({.entries = 4, .channels = 5, .args = 1});
    for (unsigned call = 0; call < 30; ++call) {
        launch_items(fifo, next_items(call % 5), 1 + call % 5);
    }
    expect_all();
}

// The kernel waits in its first item, when it has loaded as many as it has room for: just these
// entries are free again.
TEST_F(WorkFifoTest, NamesTheBlockThatDoesNotLoadItsItems) {
    WorkFifo<Item> fifo({.entries = 8, .channels = 2, .args = 0, .limit = 2s});
    launch_items(fifo, next_items(5), 2);
    expect_all();
    std::vector<Item> items = next_items(8);
    items[0] = {output(), 0, 0, Operation::kWait, 0, 0};
    launch_items(fifo, items, 2);
    launch_items(fifo, next_items(kRoom), 2);
    const std::vector<Item> more = next_items(4);
    EXPECT_EQ(testing::text_thrown_by([&] { fifo.store(more, stream_.get()); }),
              "waited 2 s for 4 free entries of the work FIFO: 8 of 8 are in use, since block 0 "
              "has not loaded the items from number 8 on. Its kernel failed, still waits for "
              "something else, or was never launched");
    simt::store(gate_.as<std::uint32_t>(), 1U, simt::Order::kRelease);
    expect_all();
    launch_items(fifo, more, 2);  // the call that failed stored nothing
    expect_all();
}

// The rest of the batch is not executed, and its entries are free again.
TEST_F(WorkFifoTest, LeavesABatchBeforeItsEnd) {
    WorkFifo<Item> fifo({.entries = 8, .channels = 3, .args = 0});
    for (unsigned leaves_after = 0; leaves_after < 8; ++leaves_after) {
        std::vector<Item> items = next_items(8);
        items[leaves_after] = {output(), 0, 0, Operation::kLeave, 0, 0};
        launch_items(fifo, items, 3);
        expect_all();
    }
}

TEST_F(WorkFifoTest, RefusesMoreItemsThanItHasEntries) {
    WorkFifo<Item> fifo({.entries = 64, .channels = 1});
    EXPECT_EQ(testing::text_thrown_by([&] { fifo.store(next_items(65), stream_.get()); }),
              "65 work items in one launch, and the work FIFO has 64 entries");
    EXPECT_EQ(testing::text_thrown_by([] { WorkFifo<Item>({.entries = 48}); }),
              "a work FIFO has a power of two of entries and at least one channel, not 48 and 64");
}

TEST_F(WorkFifoTest, ReplaysAGraphWhoseItemsAreParameters) {
    WorkFifo<Item> fifo({.entries = 64, .channels = 2});
    const std::vector<Item> captured = next_items(kArgs);
    const Graph graph = Graph::capture(stream_.get(), [&] { launch_items(fifo, captured, 2); });
    graph.launch(stream_.get());
    expect_all();
    for (unsigned replay = 0; replay < 3; ++replay) {
        launch_items(fifo, next_items(64), 2);  // other items in between, through the ring
        graph.launch(stream_.get());
        execute_here(captured);
        expect_all();
    }
}

TEST_F(WorkFifoTest, RefusesToStoreWhatAGraphWouldReplay) {
    WorkFifo<Item> fifo({.entries = 64, .channels = 2});
    const std::vector<Item> many = next_items(kArgs + 1);
    const Graph graph = Graph::capture(stream_.get(), [&] {
        EXPECT_EQ(testing::text_thrown_by([&] { fifo.store(many, stream_.get()); }),
                  std::to_string(kArgs + 1) +
                      " work items in one launch of a captured stream: only " +
                      std::to_string(kArgs) +
                      " fit into its parameters, and a replay would find other items in the work "
                      "FIFO. Launch fewer at a time");
        launch_items(fifo, next_items(2), 2);  // the capture goes on
    });
    graph.launch(stream_.get());
    expect_all();
}

}  // namespace
}  // namespace symm
