// The kernels: every size, every word.

#include "labs/02_access/kernels.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "common/cuda/copy.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/pattern/pattern.hpp"
#include "labs/02_access/latency.hpp"
#include "labs/02_access/shared_buffer.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"

namespace symm {
namespace {

// Around a vector of four words, around a grid's width, and far beyond one round of a grid.
constexpr std::size_t kSizes[] = {1, 2, 3, 4, 5, 15, 16, 17, 1023, 4097, 65'537};

class Kernels : public AccessLabTest {
protected:
    std::vector<std::uint32_t> read(CUdeviceptr at, std::size_t words) const {
        std::vector<std::uint32_t> data(words);
        gpu(0).make_current();
        copy_to_host(data.data(), at, words * sizeof(std::uint32_t));
        return data;
    }
    void write(CUdeviceptr at, const std::vector<std::uint32_t>& data) const {
        gpu(0).make_current();
        copy_to_device(at, data.data(), data.size() * sizeof(std::uint32_t));
    }
    static constexpr std::uint32_t kPoison = 0xdeadbeef;
};

TEST_F(Kernels, FillEveryWordAndNoneBehind) {
    const SharedBuffer buffer(0, 300'000, {});
    for (const std::size_t words : kSizes) {
        write(buffer.base(), std::vector<std::uint32_t>(words + 8, kPoison));
        pattern::fill(gpu(0), {buffer.base(), words, 3, 1000});
        const std::vector<std::uint32_t> data = read(buffer.base(), words + 8);
        for (std::size_t i = 0; i < data.size(); ++i) {
            ASSERT_EQ(data[i], i < words ? pattern::word(3, 1000 + i) : kPoison)
                << "word " << i << " of " << words;
        }
    }
}

TEST_F(Kernels, FindASingleWrongWord) {
    const SharedBuffer buffer(0, 300'000, {});
    for (const std::size_t words : kSizes) {
        const pattern::Range range{buffer.base(), words, 5};
        for (const std::size_t wrong : {std::size_t{0}, words / 2, words - 1}) {
            pattern::fill(gpu(0), range);
            ASSERT_TRUE(pattern::compare(gpu(0), range).right()) << words;
            write(buffer.base() + wrong * sizeof(std::uint32_t), {kPoison});
            const pattern::Result verdict = pattern::compare(gpu(0), range);
            EXPECT_EQ(verdict.wrong, 1u) << words;
            EXPECT_EQ(verdict.first_wrong, wrong) << words;
            EXPECT_EQ(verdict.expected, pattern::word(5, wrong));
            EXPECT_EQ(verdict.seen, kPoison);
        }
    }
}

TEST_F(Kernels, CountAllWrongWordsAndNameTheFirst) {
    constexpr std::size_t kWords = 10'001;
    const SharedBuffer buffer(0, kWords * 4, {});
    pattern::fill(gpu(0), {buffer.base(), kWords, 1});
    EXPECT_EQ(pattern::compare(gpu(0), {buffer.base(), kWords, 2}).wrong, kWords)
        << "another's data";
    EXPECT_EQ(pattern::compare(gpu(0), {buffer.base(), kWords, 1, 1}).wrong, kWords)
        << "shifted by a word";
    EXPECT_EQ(pattern::compare(gpu(0), {buffer.base(), kWords, 2}).first_wrong, 0u);
    EXPECT_EQ(
        pattern::compare(gpu(0), {buffer.base(), kWords, 2}).describe().rfind("10001 of 10001", 0),
        0u);
}

TEST_F(Kernels, SumEveryWord) {
    const SharedBuffer buffer(0, 300'000, {});
    for (const std::size_t words : kSizes) {
        std::vector<std::uint32_t> data(words + 4, kPoison);  // poison behind the end
        std::uint64_t expected = 0;
        for (std::size_t i = 0; i < words; ++i) {
            data[i] = 0xfffffff0u + static_cast<std::uint32_t>(i % 16);  // overflows 32 bits
            expected += data[i];
        }
        write(buffer.base(), data);
        EXPECT_EQ(sum(gpu(0), buffer.base(), words), expected) << words;
        EXPECT_EQ(sum(gpu(0), buffer.base(), words), expected) << words << ", again";
    }
}

TEST_F(Kernels, CopyEveryWordAndNoneBehind) {
    const SharedBuffer from(0, 300'000, {});
    const SharedBuffer to(0, 300'000, {});
    for (const std::size_t words : kSizes) {
        for (const LaunchShape shape : {gpu(0).shape(), LaunchShape{1, gpu(0).shape().threads}}) {
            write(to.base(), std::vector<std::uint32_t>(words + 8, kPoison));
            pattern::queue_fill(gpu(0), {from.base(), words + 8, 9});
            gpu(0).make_current();
            queue_copy(gpu(0).stream(), shape, to.base(), from.base(), words * 4);
            gpu(0).wait("the copy");
            const std::vector<std::uint32_t> data = read(to.base(), words + 8);
            for (std::size_t i = 0; i < data.size(); ++i) {
                ASSERT_EQ(data[i], i < words ? pattern::word(9, i) : kPoison)
                    << "word " << i << " of " << words;
            }
        }
    }
}

TEST_F(Kernels, WorkOnEveryDevicesMemoryFromEveryDevice) {
    constexpr std::size_t kWords = 3'001;
    PeerMatrix matrix = PeerMatrix::query();
    for (const Pair& pair : matrix.usable_pairs()) {
        const SharedBuffer buffer(pair.owner, kWords * 4, matrix.users_of(pair.owner));
        const auto seed = static_cast<std::uint32_t>(100 * pair.accessor + pair.owner);
        pattern::fill(gpu(pair.accessor), {buffer.base(), kWords, seed});
        for (const int reader : buffer.users()) {
            EXPECT_TRUE(pattern::compare(gpu(reader), {buffer.base(), kWords, seed}).right())
                << describe(pair) << ", read by " << reader;
        }
    }
}

TEST(Pattern, IsUniqueToIndexAndSeed) {
    std::vector<std::uint32_t> words;
    for (std::size_t i = 0; i < 100'000; ++i) {
        words.push_back(pattern::word(1, i));
        EXPECT_NE(pattern::word(1, i), pattern::word(2, i));
    }
    std::sort(words.begin(), words.end());
    EXPECT_EQ(std::adjacent_find(words.begin(), words.end()), words.end());
}

TEST(Chain, VisitsEveryLineOnceAndComesBack) {
    for (const std::size_t lines : {1u, 2u, 3u, 1000u}) {
        const std::vector<std::uint32_t> chain = make_chain(lines, 42);
        std::vector<int> visits(lines, 0);
        std::uint32_t at = 0;
        for (std::size_t i = 0; i < lines; ++i) {
            ASSERT_EQ(at % kWordsOfLine, 0u);
            ++visits.at(at / kWordsOfLine);
            at = chain.at(at);
        }
        EXPECT_EQ(at, 0u) << lines;
        EXPECT_EQ(visits, std::vector<int>(lines, 1)) << lines;
    }
}

TEST_F(Kernels, ChaseThroughEveryDevicesMemory) {
    const PeerMatrix matrix = PeerMatrix::query();
    for (const int owner : {0, last_device()}) {
        for (const int accessor : matrix.users_of(owner)) {
            EXPECT_GE(load_latency_ns(gpu(accessor), gpu(owner), 1 << 14, 300), 0.0);
        }
    }
}

TEST_F(Kernels, ThatOutlastTheHostsPatienceAreEndedAndTheErrorSaysWhich) {
    gpu(0).make_current();
    const Stream stream;
    const PinnedMemory never_open(sizeof(std::uint32_t));
    KernelTimeout timeout(std::chrono::milliseconds(100));
    simt::Timeout watch = timeout.timeout();
    watch.limit_ns = 60'000'000'000;  // more than the host has
    queue_gate(stream.get(), never_open.as<std::uint32_t>(), watch);
    EXPECT_THAT([&] { timeout.synchronize(stream, "the gate"); },
                ::testing::ThrowsMessage<std::runtime_error>(::testing::AllOf(
                    ::testing::HasSubstr("the gate did not finish within 2.1 s"),
                    ::testing::HasSubstr("ended by the host"), ::testing::HasSubstr("0.1 s"),
                    ::testing::HasSubstr("SYMM_TIMEOUT"))));
}

}  // namespace
}  // namespace symm
