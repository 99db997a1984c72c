// The result check: every word is written, and a single wrong one is found wherever it is.

#include "common/test_pattern/test_pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/cuda/pinned_memory.hpp"

namespace symm {
namespace {

// Numbers of words: fewer than a grid has threads and, on emulated GPUs, more.
constexpr std::size_t kSizes[] = {1, 2, 31, 63, 64, 65, 1023, 4097, 65'537};
constexpr std::uint32_t kPoison = 0xdeadbeef;

class PatternTest : public ::testing::Test {
protected:
    Gpu gpu_{0};
    PinnedMemory memory_{300'000};
    std::uint32_t* words_ = memory_.as<std::uint32_t>();
    test_pattern::Range range(std::size_t words, std::uint32_t seed, std::size_t first = 0) const {
        return {memory_.address(), words, seed, first};
    }
};

TEST_F(PatternTest, IsWrittenToEveryWordAndNoneAfter) {
    for (const std::size_t words : kSizes) {
        std::fill_n(words_, words + 8, kPoison);
        test_pattern::fill(gpu_, range(words, 3, 1000));
        for (std::size_t i = 0; i < words + 8; ++i) {
            ASSERT_EQ(words_[i], i < words ? test_pattern::word(3, 1000 + i) : kPoison)
                << "word " << i << " of " << words;
        }
    }
}

TEST_F(PatternTest, IsFoundWrongWhereverOneWordIs) {
    for (const std::size_t words : kSizes) {
        for (const std::size_t wrong : {std::size_t{0}, words / 2, words - 1}) {
            test_pattern::fill(gpu_, range(words, 5));
            EXPECT_EQ(test_pattern::compare(gpu_, range(words, 5)).describe(),
                      "all " + std::to_string(words) + " words right");
            words_[wrong] = kPoison;
            const test_pattern::Result result = test_pattern::compare(gpu_, range(words, 5));
            EXPECT_EQ(result.wrong, 1u) << words;
            EXPECT_EQ(result.first_wrong, wrong) << words;
            EXPECT_EQ(result.expected, test_pattern::word(5, wrong));
            EXPECT_EQ(result.seen, kPoison);
        }
    }
}

TEST_F(PatternTest, OfAnotherSeedOrPlaceIsWrongInEveryWord) {
    constexpr std::size_t kWords = 10'001;
    test_pattern::fill(gpu_, range(kWords, 1));
    EXPECT_EQ(test_pattern::compare(gpu_, range(kWords, 2)).wrong, kWords);
    EXPECT_EQ(test_pattern::compare(gpu_, range(kWords, 1, 1)).wrong, kWords)
        << "shifted by a word";
    EXPECT_EQ(test_pattern::compare(gpu_, range(kWords, 2)).first_wrong, 0u);
    EXPECT_EQ(test_pattern::compare(gpu_, range(kWords, 2)).describe().rfind("10001 of 10001", 0),
              0u);
}

TEST(Pattern, IsUniqueToIndexAndSeed) {
    std::vector<std::uint32_t> words;
    for (std::size_t i = 0; i < 100'000; ++i) {
        words.push_back(test_pattern::word(1, i));
        EXPECT_NE(test_pattern::word(1, i), test_pattern::word(2, i));
    }
    std::sort(words.begin(), words.end());
    EXPECT_EQ(std::adjacent_find(words.begin(), words.end()), words.end());
}

}  // namespace
}  // namespace symm
