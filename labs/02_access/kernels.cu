#include "labs/02_access/kernels.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "common/cuda/launch.hpp"
#include "common/pattern/pattern.hpp"
#include "common/simt/atomic.hpp"

namespace symm {
namespace access_kernels {

using simt::ThreadBlock;
/// Four words in one access of 16 bytes (may_alias: the memory holds words).
struct [[gnu::may_alias]] alignas(16) Words {
    std::uint32_t word[4];
};

constexpr std::size_t kWordsOfVector = sizeof(Words) / sizeof(std::uint32_t);

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
        simt::Waiter(timeout).until({simt::Wait::kSignal, -1, -1, 1}, [this](std::uint64_t& seen) {
            seen = simt::load(open, simt::Order::kRelaxed);
            return seen != 0;
        });
    }
};

}  // namespace access_kernels

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
