#include "labs/02_access/kernels.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "common/cuda/launch.hpp"
#include "common/simt/atomic.hpp"
#include "labs/01_vmm_alloc/pattern.hpp"

namespace symm {
namespace access_kernels {

using simt::ThreadBlock;
/// Four words in one access of 16 bytes (may_alias: the memory holds words).
struct [[gnu::may_alias]] alignas(16) Words {
    std::uint32_t word[4];
};

constexpr std::size_t kWordsOfVector = sizeof(Words) / sizeof(std::uint32_t);

/// Vectors first, spread over the grid so that neighbours write neighbouring addresses; then the
/// up to three words behind the last whole vector.
struct Fill {
    std::uint32_t* to;
    std::size_t words;
    std::uint32_t seed;
    std::size_t first;

    __host__ __device__ void operator()(const ThreadBlock& block) const {
        const std::size_t vectors = words / kWordsOfVector;
        for (std::size_t i = block.grid_rank(); i < vectors; i += block.grid_size()) {
            const std::size_t index = first + i * kWordsOfVector;
            reinterpret_cast<Words*>(to)[i] = {
                {pattern_word(seed, index), pattern_word(seed, index + 1),
                 pattern_word(seed, index + 2), pattern_word(seed, index + 3)}};
        }
        const std::size_t tail = vectors * kWordsOfVector + block.grid_rank();
        if (tail < words) {
            to[tail] = pattern_word(seed, first + tail);
        }
    }
};

/// What one thread, then one block, found wrong.
struct Found {
    std::uint64_t wrong;
    std::uint64_t first;
    std::uint32_t expected;
    std::uint32_t seen;

    __host__ __device__ void take(const Found& other) {
        if (other.wrong != 0 && (wrong == 0 || other.first < first)) {
            first = other.first;
            expected = other.expected;
            seen = other.seen;
        }
        wrong += other.wrong;
    }
};

/// Each thread counts for itself, thread 0 adds its block's counts up and writes them to the
/// block's own slot: no atomics, which over PCIe are not atomic for the host.
struct Verify {
    const std::uint32_t* from;
    std::size_t words;
    std::uint32_t seed;
    std::size_t first;
    Found* slots;

    __host__ __device__ void operator()(const ThreadBlock& block) const {
        Found mine{};
        const std::size_t vectors = words / kWordsOfVector;
        for (std::size_t i = block.grid_rank(); i < vectors; i += block.grid_size()) {
            const Words vector = reinterpret_cast<const Words*>(from)[i];
            for (std::size_t k = 0; k < kWordsOfVector; ++k) {
                compare(mine, i * kWordsOfVector + k, vector.word[k]);
            }
        }
        const std::size_t tail = vectors * kWordsOfVector + block.grid_rank();
        if (tail < words) {
            compare(mine, tail, from[tail]);
        }
        Found* all = block.shared<Found>();
        all[block.thread_rank()] = mine;
        block.sync();
        if (block.thread_rank() == 0) {
            for (unsigned i = 1; i < block.size(); ++i) {
                mine.take(all[i]);
            }
            slots[block.group_index()] = mine;
        }
    }

    __host__ __device__ void compare(Found& found, std::size_t index, std::uint32_t seen) const {
        const std::uint32_t expected = pattern_word(seed, first + index);
        if (seen != expected) {
            found.take({1, index, expected, seen});
        }
    }
};

struct Sum {
    const std::uint32_t* from;
    std::size_t words;
    std::uint64_t* slots;

    __host__ __device__ void operator()(const ThreadBlock& block) const {
        std::uint64_t mine = 0;
        const std::size_t vectors = words / kWordsOfVector;
        for (std::size_t i = block.grid_rank(); i < vectors; i += block.grid_size()) {
            const Words vector = reinterpret_cast<const Words*>(from)[i];
            mine +=
                std::uint64_t{vector.word[0]} + vector.word[1] + vector.word[2] + vector.word[3];
        }
        const std::size_t tail = vectors * kWordsOfVector + block.grid_rank();
        if (tail < words) {
            mine += from[tail];
        }
        std::uint64_t* all = block.shared<std::uint64_t>();
        all[block.thread_rank()] = mine;
        block.sync();
        if (block.thread_rank() == 0) {
            for (unsigned i = 1; i < block.size(); ++i) {
                mine += all[i];
            }
            slots[block.group_index()] = mine;
        }
    }
};

/// All loads of a round are issued before the first of their values is used: a remote load takes
/// more than half a microsecond, and what hides it is how many are on their way.
struct Copy {
    static constexpr int kInFlight = 8;
    std::uint32_t* to;
    const std::uint32_t* from;
    std::size_t words;

    __host__ __device__ void operator()(const ThreadBlock& block) const {
        auto* target = reinterpret_cast<Words*>(to);
        const auto* source = reinterpret_cast<const Words*>(from);
        const std::size_t vectors = words / kWordsOfVector;
        const std::size_t step = block.grid_size();
        std::size_t i = block.grid_rank();
        for (; i + (kInFlight - 1) * step < vectors; i += kInFlight * step) {
            Words held[kInFlight];
            for (int k = 0; k < kInFlight; ++k) {
                held[k] = source[i + k * step];
            }
            for (int k = 0; k < kInFlight; ++k) {
                target[i + k * step] = held[k];
            }
        }
        for (; i < vectors; i += step) {
            target[i] = source[i];
        }
        const std::size_t tail = vectors * kWordsOfVector + block.grid_rank();
        if (tail < words) {
            to[tail] = from[tail];
        }
    }
};

/// Relaxed loads of system scope: each goes to the memory itself, past the reader's own L1 cache.
struct Chase {
    const std::uint32_t* next;
    std::uint32_t hops;
    std::uint32_t* end;

    __host__ __device__ void operator()(const ThreadBlock&) const {
        std::uint32_t at = 0;
        for (std::uint32_t i = 0; i < hops; ++i) {
            at = simt::load(next + at, simt::Order::kRelaxed);
        }
        *end = at;
    }
};

struct Gate {
    const std::uint32_t* open;
    simt::Timeout timeout;

    __host__ __device__ void operator()(const ThreadBlock&) const {
        // Relaxed: the gate says when, and hands over no data.
        timeout.until({simt::Wait::kSignal, -1, -1, 1}, [this](std::uint64_t& seen) {
            seen = simt::load(open, simt::Order::kRelaxed);
            return seen != 0;
        });
    }
};

}  // namespace access_kernels

std::string Verdict::describe(std::size_t words) const {
    if (right()) {
        return fmt::format("all {} words right", words);
    }
    return fmt::format("{} of {} words wrong, first word {}: expected {:#010x}, saw {:#010x}",
                       wrong, words, first_wrong, expected, seen);
}

void queue_fill(const Gpu& gpu, const PatternRange& range) {
    gpu.make_current();
    const auto [blocks, threads] = gpu.shape();
    launch(gpu.stream(), blocks, threads,
           access_kernels::Fill{reinterpret_cast<std::uint32_t*>(range.at), range.words, range.seed,
                                range.first});
}

Verdict verify(const Gpu& gpu, const PatternRange& range) {
    using access_kernels::Found;
    gpu.make_current();
    const auto [blocks, threads] = gpu.shape();
    auto* slots = static_cast<Found*>(gpu.results());
    static_assert(1024 * sizeof(Found) <= Gpu::kResultBytes, "a slot for each block");
    launch(gpu.stream(), blocks, threads,
           access_kernels::Verify{reinterpret_cast<const std::uint32_t*>(range.at), range.words,
                                  range.seed, range.first, slots},
           threads * sizeof(Found));
    gpu.wait(fmt::format("the comparison on device {}", gpu.ordinal()));
    Found all{};
    std::for_each(slots, slots + blocks, [&](const Found& found) { all.take(found); });
    return {all.wrong, all.first, all.expected, all.seen};
}

std::uint64_t sum(const Gpu& gpu, CUdeviceptr at, std::size_t words) {
    gpu.make_current();
    const auto [blocks, threads] = gpu.shape();
    auto* slots = static_cast<std::uint64_t*>(gpu.results());
    launch(gpu.stream(), blocks, threads,
           access_kernels::Sum{reinterpret_cast<const std::uint32_t*>(at), words, slots},
           threads * sizeof(std::uint64_t));
    gpu.wait(fmt::format("the sum on device {}", gpu.ordinal()));
    std::uint64_t total = 0;
    std::for_each(slots, slots + blocks, [&](std::uint64_t one) { total += one; });
    return total;
}

void queue_copy(CUstream stream, LaunchShape shape, CUdeviceptr to, CUdeviceptr from,
                std::size_t bytes) {
    launch(stream, shape.blocks, shape.threads,
           access_kernels::Copy{reinterpret_cast<std::uint32_t*>(to),
                                reinterpret_cast<const std::uint32_t*>(from),
                                bytes / sizeof(std::uint32_t)});
}

void queue_chase(CUstream stream, CUdeviceptr at, std::uint32_t hops, std::uint32_t* end) {
    launch(stream, 1, 1,
           access_kernels::Chase{reinterpret_cast<const std::uint32_t*>(at), hops, end});
}

void queue_gate(CUstream stream, const std::uint32_t* open, const simt::Timeout& timeout) {
    launch(stream, 1, 1, access_kernels::Gate{open, timeout});
}

}  // namespace symm
