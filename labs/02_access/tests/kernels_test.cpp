// The kernels of this lab: every size, every word.

#include "labs/02_access/kernels.hpp"

#include <gmock/gmock.h>

#include "common/cuda/copy.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "labs/02_access/access.hpp"
#include "labs/02_access/latency.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"

namespace symm {
namespace {

// One vector of four words, around a round of the grid, and far beyond.
constexpr std::size_t kSizes[] = {4, 8, 60, 64, 68, 1020, 4096, 65'540};

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

TEST_F(Kernels, CopyEveryWordAndNoneBehind) {
    const SharedBuffer from(0, 300'000, {});
    const SharedBuffer to(0, 300'000, {});
    for (const std::size_t words : kSizes) {
        for (const LaunchShape shape : {gpu(0).shape(), LaunchShape{1, gpu(0).shape().threads}}) {
            write(to.base(), std::vector<std::uint32_t>(words + 8, kPoison));
            test_pattern::queue_fill(gpu(0), {from.base(), words + 8, 9});
            gpu(0).make_current();
            queue_copy(gpu(0).stream(), shape, to.base(), from.base(), words * 4);
            gpu(0).wait("the copy");
            const std::vector<std::uint32_t> data = read(to.base(), words + 8);
            for (std::size_t i = 0; i < data.size(); ++i) {
                ASSERT_EQ(data[i], i < words ? test_pattern::word(9, i) : kPoison)
                    << "word " << i << " of " << words;
            }
        }
    }
}

// The destination is the source, shifted by some rows: vectors of all threads. So each thread
// writes only what it reads itself. Within a round the data stays right only if all loads come
// before the first store. The first `shift` rows of a later round may be what the round before it
// has stored.
TEST_F(Kernels, LoadAWholeRoundBeforeTheFirstStore) {
    constexpr std::size_t kInFlight = 8;
    constexpr std::size_t kRounds = 3;
    for (const LaunchShape shape : {LaunchShape{1, 1}, LaunchShape{1, 2}, LaunchShape{2, 16}}) {
        const std::size_t threads = shape.blocks * shape.threads;
        const std::size_t row = threads * 16;  // bytes
        const std::size_t bytes = kRounds * kInFlight * row;
        const SharedBuffer buffer(0, bytes + kInFlight * row, {});
        for (std::size_t shift = 1; shift < kInFlight; ++shift) {
            test_pattern::fill(gpu(0), {buffer.base(), buffer.size() / 4, 3});
            const CUdeviceptr to = buffer.base() + shift * row;
            gpu(0).make_current();
            queue_copy(gpu(0).stream(), shape, to, buffer.base(), bytes);
            gpu(0).wait("the copy");
            for (std::size_t round = 0; round < kRounds; ++round) {
                const std::size_t before = round == 0 ? 0 : shift;  // rows that may be either
                const std::size_t first = (round * kInFlight + before) * row;
                const test_pattern::Range copied{to + first, (kInFlight - before) * row / 4, 3,
                                                 first / 4};
                EXPECT_EQ(test_pattern::compare(gpu(0), copied).wrong, 0u)
                    << "a copy shifted by " << shift * threads << " vectors, " << threads
                    << " threads, round " << round;
            }
        }
    }
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
                    ::testing::HasSubstr("the host ended it"), ::testing::HasSubstr("0.1 s"),
                    ::testing::HasSubstr("SYMM_TIMEOUT"))));
}

}  // namespace
}  // namespace symm
