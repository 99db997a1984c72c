// Pools of three ranks that make the same calls, and whose drivers pick different addresses.

#include "labs/bugs_that_shipped/reused_blocks.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

namespace symm::bugs_that_shipped {
namespace {

constexpr int kRanks = 3;

/// What a rank knows of its memory.
struct Memory {
    std::vector<std::uintptr_t> windows;  ///< Their addresses.
    std::map<std::uintptr_t, int> used;   ///< Addresses and their tensors.
};

class ReusedBlocks : public ::testing::Test {
protected:
    /// Addresses grow on rank 0, become smaller on rank 1, and have no order on rank 2.
    static std::uintptr_t address_of(int rank, std::uintptr_t n) {
        const std::uintptr_t place = rank == 0 ? n : rank == 1 ? 4096 - n : n * 1237 % 4096;
        return place << 24;
    }

    ReusedBlocks() {
        for (int rank = 0; rank < kRanks; ++rank) {
            pools_.emplace_back([this, rank](std::size_t) {
                auto& windows = memory_[rank].windows;
                windows.push_back(address_of(rank, windows.size() + 1));
                return windows.back();
            });
        }
    }

    /// Returns the tensor's number.
    int allocate(std::size_t bytes) {
        const int tensor = next_++;
        std::vector<Block>& blocks = tensors_[tensor];
        for (int rank = 0; rank < kRanks; ++rank) {
            const Block block = blocks.emplace_back(pools_[rank].allocate(bytes));
            EXPECT_GE(block.bytes, bytes) << "the block is too small for its tensor";
            EXPECT_EQ(block.window, blocks[0].window)
                << fmt::format("tensor {} is in window {} of rank {}, and in window {} of rank 0",
                               tensor, block.window, rank, blocks[0].window);
            const auto& windows = memory_[rank].windows;
            const auto found = std::ranges::find(windows, block.address);
            EXPECT_EQ(found - windows.begin(), block.window)
                << fmt::format("rank {}: this memory is another window", rank);
            EXPECT_TRUE(memory_[rank].used.emplace(block.address, tensor).second)
                << fmt::format("rank {}: two tensors have the same block", rank);
        }
        return tensor;
    }

    /// Rank 0 frees the tensors in this order, and the others in other orders.
    void free(std::vector<int> tensors) {
        for (int rank = 0; rank < kRanks; ++rank) {
            for (const int tensor : tensors) {
                const Block& block = tensors_.at(tensor)[rank];
                memory_[rank].used.erase(block.address);
                pools_[rank].free(block);
            }
            std::rotate(tensors.begin(), tensors.begin() + (tensors.empty() ? 0 : 1),
                        tensors.end());
        }
        for (const int tensor : tensors) {
            tensors_.erase(tensor);
        }
    }

    std::vector<BlockPool> pools_;
    std::array<Memory, kRanks> memory_;
    std::map<int, std::vector<Block>> tensors_;  ///< With a block per rank.
    int next_ = 0;
};

TEST_F(ReusedBlocks, LieInTheSameWindowOnAllRanks) {
    const int first = allocate(1024);
    const int second = allocate(1024);
    free({first});
    free({second});
    allocate(1024);
}

TEST_F(ReusedBlocks, LieInTheSameWindowWhateverTheOrderOfFrees) {
    const int first = allocate(1024);
    const int second = allocate(1024);
    const int third = allocate(1024);
    free({first, second, third});
    allocate(1024);
    allocate(1024);
}

TEST_F(ReusedBlocks, AreTheSmallestThatAreLargeEnough) {
    const int large = allocate(4096);
    const int small = allocate(1024);
    free({large, small});
    for (const std::size_t bytes : {1024, 4096}) {
        EXPECT_EQ(tensors_.at(allocate(512))[0].bytes, bytes) << "of a block for 512 bytes";
    }
}

TEST_F(ReusedBlocks, NeedNoNewWindow) {
    for (int step = 0; step < 10; ++step) {
        const int first = allocate(1024);
        const int second = allocate(1024);
        free({second, first});
    }
    EXPECT_EQ(memory_[0].windows.size(), 2) << "windows, for two tensors at a time";
}

TEST_F(ReusedBlocks, LieInTheSameWindowInAnyProgram) {
    std::mt19937 random(1);
    for (int step = 0; step < 300 && !HasFailure(); ++step) {
        if (random() % 2 == 0) {
            allocate(std::size_t{512} << random() % 4);
            continue;
        }
        std::vector<int> freed;
        for (const auto& [tensor, blocks] : tensors_) {
            if (random() % 3 == 0) {
                freed.push_back(tensor);
            }
        }
        free(freed);
    }
}

}  // namespace
}  // namespace symm::bugs_that_shipped
