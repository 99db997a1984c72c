#include "common/test_pattern/test_pattern.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "common/cuda/launch.hpp"

namespace symm::test_pattern {

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

/// Each thread counts for itself. Thread 0 adds up its block's counts and writes them to the
/// block's own slot in host memory. The slots need no atomics, which some buses between host and
/// device do not support.
struct Compare {
    const std::uint32_t* from;
    std::size_t words;
    std::uint32_t seed;
    std::size_t first;
    Result* slots;

    __host__ __device__ void operator()(const ThreadBlock& block) const {
        Result found{};
        for (std::size_t i = block.grid_rank(); i < words; i += block.grid_size()) {
            const std::uint32_t expected = word(seed, first + i);
            const std::uint32_t seen = from[i];
            if (seen != expected) {
                found.add({0, 1, i, expected, seen});
            }
        }
        Result* all = block.shared<Result>();
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
    static_assert(Gpu::kMostBlocks * sizeof(Result) <= Gpu::kResultBytes, "a slot for each block");
    gpu.make_current();
    const auto [blocks, threads] = gpu.shape();
    auto* slots = static_cast<Result*>(gpu.results());
    launch(gpu.stream(), blocks, threads,
           Compare{reinterpret_cast<const std::uint32_t*>(range.at), range.words, range.seed,
                   range.first, slots},
           threads * sizeof(Result));
    gpu.wait(fmt::format("the loads of device {}", gpu.ordinal()));
    Result all{range.words, 0, 0, 0, 0};
    std::for_each(slots, slots + blocks, [&](const Result& found) { all.add(found); });
    return all;
}

}  // namespace symm::test_pattern
