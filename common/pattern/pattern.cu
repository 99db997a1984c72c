#include "common/pattern/pattern.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "common/cuda/launch.hpp"

namespace symm::pattern {

using simt::ThreadBlock;

struct Fill {
    std::uint32_t* to;
    std::size_t words;
    std::uint32_t seed;
    std::size_t first;

    __host__ __device__ void operator()(const ThreadBlock& block) const {
        for (std::size_t i = block.grid_rank(); i < words; i += block.grid_size()) {
            to[i] = word(seed, first + i);
        }
    }
};

/// The wrong words that one thread, then one block, found.
struct Found {
    std::uint64_t wrong;
    std::uint64_t first;
    std::uint32_t expected;
    std::uint32_t seen;

    __host__ __device__ void add(const Found& other) {
        if (other.wrong != 0 && (wrong == 0 || other.first < first)) {
            first = other.first;
            expected = other.expected;
            seen = other.seen;
        }
        wrong += other.wrong;
    }
};

/// Each thread counts for itself. Thread 0 adds up its block's counts and writes them to the
/// block's own slot in host memory. The slots need no atomics, which some buses between host and
/// device do not support.
struct Compare {
    const std::uint32_t* from;
    std::size_t words;
    std::uint32_t seed;
    std::size_t first;
    Found* slots;

    __host__ __device__ void operator()(const ThreadBlock& block) const {
        Found found{};
        for (std::size_t i = block.grid_rank(); i < words; i += block.grid_size()) {
            const std::uint32_t expected = word(seed, first + i);
            const std::uint32_t seen = from[i];
            if (seen != expected) {
                found.add({1, i, expected, seen});
            }
        }
        Found* all = block.shared<Found>();
        all[block.thread_rank()] = found;
        block.sync();
        if (block.thread_rank() == 0) {
            for (unsigned i = 1; i < block.size(); ++i) {
                found.add(all[i]);
            }
            slots[block.group_index()] = found;
        }
    }
};

std::string Result::describe() const {
    if (right()) {
        return fmt::format("all {} words right", words);
    }
    return fmt::format("{} of {} words wrong, first word {}: expected {:#010x}, saw {:#010x}",
                       wrong, words, first_wrong, expected, seen);
}

void queue_fill(const Gpu& gpu, const Range& range) {
    gpu.make_current();
    const auto [blocks, threads] = gpu.shape();
    launch(gpu.stream(), blocks, threads,
           Fill{reinterpret_cast<std::uint32_t*>(range.at), range.words, range.seed, range.first});
}

void fill(const Gpu& gpu, const Range& range) {
    queue_fill(gpu, range);
    gpu.wait(fmt::format("the stores of device {}", gpu.ordinal()));
}

Result compare(const Gpu& gpu, const Range& range) {
    static_assert(Gpu::kMostBlocks * sizeof(Found) <= Gpu::kResultBytes, "a slot for each block");
    gpu.make_current();
    const auto [blocks, threads] = gpu.shape();
    auto* slots = static_cast<Found*>(gpu.results());
    launch(gpu.stream(), blocks, threads,
           Compare{reinterpret_cast<const std::uint32_t*>(range.at), range.words, range.seed,
                   range.first, slots},
           threads * sizeof(Found));
    gpu.wait(fmt::format("the loads of device {}", gpu.ordinal()));
    Found all{};
    std::for_each(slots, slots + blocks, [&](const Found& found) { all.add(found); });
    return {range.words, all.wrong, all.first, all.expected, all.seen};
}

}  // namespace symm::pattern
