#include "labs/01_vmm_alloc/words.hpp"

#include <algorithm>
#include <vector>

#include "common/cuda/copy.hpp"
#include "labs/01_vmm_alloc/pattern.hpp"

namespace symm {

namespace {

// What the host holds at a time: enough for copies at full speed, and little to page in.
constexpr std::size_t kChunk = std::size_t{4} << 20;

using Words = std::vector<std::uint32_t>;

// The words of [at, at + bytes).
void make(Words& words, std::size_t at, std::size_t bytes, std::uint32_t seed) {
    words.resize(bytes / sizeof(std::uint32_t));
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = pattern_word(seed, at / sizeof(std::uint32_t) + i);
    }
}

}  // namespace

void write_words(CUdeviceptr base, std::size_t from, std::size_t to, std::uint32_t seed) {
    Words words;
    for (std::size_t at = from; at < to; at += kChunk) {
        const std::size_t bytes = std::min(kChunk, to - at);
        make(words, at, bytes, seed);
        copy_to_device(base + at, words.data(), bytes);
    }
}

std::optional<WrongWord> find_wrong_word(CUdeviceptr base, std::size_t bytes, std::uint32_t seed) {
    Words expected;
    Words seen;
    for (std::size_t at = 0; at < bytes; at += kChunk) {
        make(expected, at, std::min(kChunk, bytes - at), seed);
        seen.resize(expected.size());
        copy_to_host(seen.data(), base + at, seen.size() * sizeof(std::uint32_t));
        const auto [want, got] = std::mismatch(expected.begin(), expected.end(), seen.begin());
        if (want != expected.end()) {
            const auto index = static_cast<std::size_t>(want - expected.begin());
            return WrongWord{at + index * sizeof(std::uint32_t), *want, *got};
        }
    }
    return std::nullopt;
}

}  // namespace symm
