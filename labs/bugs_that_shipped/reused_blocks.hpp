#pragma once
/// \file
/// A pool of symmetric memory: its blocks are registered once, freed, and used again.
///
/// | step     | which ranks                   | does                                               |
/// |----------|-------------------------------|----------------------------------------------------|
/// | allocate | all, with sizes alike         | takes a free block that is large enough            |
/// | reserve  | all, if there is no such block| its driver picks an address, another on each rank; |
/// |          |                               | block n of all ranks is registered as window n     |
/// | free     | each, as its tensors end      | all free the same tensors before the next allocate,|
/// |          |                               | but each in an order of its own                    |
///
/// A call on a tensor uses the window in which it lies. So all ranks have to take the same block.
///
/// Model of PyTorch's memory pools for symmetric memory (README.md, "B.11").

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

namespace symm::bugs_that_shipped {

/// Memory of one rank.
struct Block {
    std::size_t bytes;
    std::uintptr_t address;
    int window;  ///< Its number: blocks are registered in the order in which they are reserved.
};

/// Which free block comes first: true if `a` does.
struct BlockOrder {
    bool operator()(const Block& a, const Block& b) const {
        return std::tie(a.bytes, a.window) < std::tie(b.bytes, b.window);
    }
};

/// The pool of one rank.
class BlockPool {
public:
    /// Reserves memory of a size in bytes, and returns its address, which is not 0.
    using Reserve = std::function<std::uintptr_t(std::size_t)>;

    explicit BlockPool(Reserve reserve) : reserve_(std::move(reserve)) {}

    /// Memory for a tensor. It may be larger than `bytes`.
    Block allocate(std::size_t bytes) {
        const auto found = free_.lower_bound({bytes, 0, 0});
        if (found == free_.end()) {
            return {bytes, reserve_(bytes), windows_++};
        }
        const Block block = *found;
        free_.erase(found);
        return block;
    }

    /// Memory that no tensor uses any more.
    void free(const Block& block) { free_.insert(block); }

private:
    Reserve reserve_;
    std::set<Block, BlockOrder> free_;
    int windows_ = 0;
};

}  // namespace symm::bugs_that_shipped
