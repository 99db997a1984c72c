#pragma once
/// \file
/// Threads that copy bytes together, in the widest accesses that both addresses allow.

#include <cstddef>
#include <cstdint>

#include "common/simt/pack.hpp"

namespace symm {

/// The share of thread `thread` when `threads` threads copy `count` words together. Each has
/// kAtOnce loads in flight, to hide the latency of the bus.
template <unsigned kAtOnce, class Word>
__host__ __device__ void copy_words(std::uint64_t thread, std::uint64_t threads, Word* to,
                                    const Word* from, std::uint64_t count) {
    std::uint64_t i = thread;
    for (; i + (kAtOnce - 1) * threads < count; i += kAtOnce * threads) {
        Word piece[kAtOnce];
        SYMM_UNROLL
        for (unsigned j = 0; j < kAtOnce; ++j) {
            piece[j] = from[i + j * threads];
        }
        SYMM_UNROLL
        for (unsigned j = 0; j < kAtOnce; ++j) {
            to[i + j * threads] = piece[j];
        }
    }
    for (; i < count; i += threads) {
        to[i] = from[i];
    }
}

/// The same for bytes: sixteen or four at once if the two addresses are equal modulo that.
template <unsigned kAtOnce = 4>
__host__ __device__ void copy_bytes(std::uint64_t thread, std::uint64_t threads,
                                    std::byte* destination, const std::byte* source,
                                    std::uint64_t bytes) {
    const auto to = reinterpret_cast<std::uintptr_t>(destination);
    const auto from = reinterpret_cast<std::uintptr_t>(source);
    std::uint64_t done = 0;
    const auto copy_as = [&]<class Word>(Word /*type*/) {
        done = (0 - to) % sizeof(Word);  // to the first whole word
        copy_words<kAtOnce>(thread, threads, destination, source, done);
        const std::uint64_t words = (bytes - done) / sizeof(Word);
        copy_words<kAtOnce>(thread, threads, reinterpret_cast<Word*>(destination + done),
                            reinterpret_cast<const Word*>(source + done), words);
        done += words * sizeof(Word);
    };
    if ((to - from) % sizeof(simt::Pack16) == 0 && bytes >= sizeof(simt::Pack16)) {
        copy_as(simt::Pack16{});
    } else if ((to - from) % sizeof(std::uint32_t) == 0 && bytes >= sizeof(std::uint32_t)) {
        copy_as(std::uint32_t{});
    }
    copy_words<kAtOnce>(thread, threads, destination + done, source + done, bytes - done);
}

}  // namespace symm
