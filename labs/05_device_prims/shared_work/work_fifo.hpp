#pragma once
/// \file
/// The host's side of a kernel's work: one launch brings a batch of items to all its blocks. Items
/// are numbered from 0 for as long as the FIFO lives; item i is in entry i mod entries of a ring in
/// pinned host memory. Each block counts, in a word that only it writes, the items that it has
/// loaded. README.md has the reasons. A batch of n items, the first with number f:
///
/// | who     | waits for                                | order       | then does           | then              | order       |
/// |---------|------------------------------------------|-------------|---------------------|-------------------|-------------|
/// | host    | consumed[b] + entries >= f + n for all b | acquire (1) | writes the n entries | launches, with f and n among the parameters | the launch (2) |
/// | block b | nothing                                  | the launch (2) | all threads load k more items, sync | consumed[b] = f + items loaded | release (3) |

#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>

#include "common/cuda/pinned_memory.hpp"
#include "common/sys/deadline.hpp"
#include "labs/05_device_prims/shared_work/work_batch.hpp"

namespace symm {

struct WorkFifoOptions {
    std::uint32_t entries = 512;  ///< A power of two.
    unsigned channels = 64;       ///< The most blocks of a launch.
    /// The most items that travel as parameters. (WorkBatch::kArgs is the most in any case.)
    std::uint32_t args = ~std::uint32_t{0};
    std::uint32_t first = 0;  ///< The first item's number: tests begin close to the wrap.
    /// How long store() waits for free entries.
    std::chrono::nanoseconds limit = Deadline::standard_limit();
};

/// The counters, for items of any type.
class WorkCounters {
public:
    /// Throws std::invalid_argument if `entries` is not a power of two, or there are no channels.
    explicit WorkCounters(const WorkFifoOptions& options);

    /// Waits for `count` free entries, and returns the number of the first. Throws
    /// - std::invalid_argument for more items than entries, and while `stream` is being captured,
    /// - std::runtime_error at the time limit, naming the slowest channel and its unread entries.
    std::uint32_t claim(std::size_t count, std::uint32_t args, CUstream stream);

    std::uint32_t* consumed() const { return consumed_.as<std::uint32_t>(); }
    const WorkFifoOptions& options() const { return options_; }

private:
    /// The slowest channel, and the number of entries that it has not loaded.
    struct Slowest {
        unsigned channel;
        std::uint32_t behind;
    };
    Slowest slowest() const;

    WorkFifoOptions options_;
    PinnedMemory consumed_;   ///< A word per channel.
    std::uint32_t produced_;  ///< The next item's number.
};

/// A FIFO of work for one rank's kernels. One host thread at a time. Construction and store() need
/// the kernels' context current; destroy it when the kernels have ended.
template <class Work>
class WorkFifo {
public:
    explicit WorkFifo(const WorkFifoOptions& options = {})
        : counters_(options),
          ring_(options.entries * sizeof(Work)),
          args_(std::min(options.args, WorkBatch<Work>::kArgs)) {}

    /// Stores a batch for the next launch on `stream`, of at most `channels` blocks. Up to kArgs
    /// items become part of the batch; more are stored in the ring, see WorkCounters::claim().
    WorkBatch<Work> store(std::span<const Work> items, CUstream stream) {
        WorkBatch<Work> batch{};
        batch.count = static_cast<std::uint32_t>(items.size());
        if (items.size() <= args_) {
            std::copy(items.begin(), items.end(), batch.args);
            return batch;
        }
        const WorkFifoOptions& options = counters_.options();
        batch.first = counters_.claim(items.size(), args_, stream);
        batch.entries = options.entries;
        batch.channels = options.channels;
        batch.ring = ring_.as<Work>();
        batch.consumed = counters_.consumed();
        for (std::uint32_t i = 0; i < batch.count; ++i) {
            ring_.as<Work>()[(batch.first + i) & (batch.entries - 1)] = items[i];
        }
        return batch;
    }

private:
    WorkCounters counters_;
    PinnedMemory ring_;
    std::uint32_t args_;
};

}  // namespace symm
