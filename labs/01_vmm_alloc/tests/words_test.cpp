// What the program says of a buffer's contents: a single wrong word anywhere is found.

#include "labs/01_vmm_alloc/words.hpp"

#include <algorithm>
#include <vector>

#include "common/cuda/copy.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"

namespace symm {
namespace {

class Words : public LabTest {
protected:
    // More than two of the chunks that are copied at a time.
    static constexpr std::size_t kBytes = std::size_t{9} << 20;

    static void put(CUdeviceptr at, std::uint32_t word) { copy_to_device(at, &word, sizeof(word)); }
    static std::uint32_t get(CUdeviceptr at) {
        std::uint32_t word = 0;
        copy_to_host(&word, at, sizeof(word));
        return word;
    }
};

TEST_F(Words, AreReadBackAsWritten) {
    const DeviceBuffer buffer(0, kBytes);
    write_words(buffer.base(), 0, kBytes, 7);
    EXPECT_FALSE(find_wrong_word(buffer.base(), kBytes, 7));
    EXPECT_TRUE(find_wrong_word(buffer.base(), kBytes, 8)) << "another seed";
}

TEST_F(Words, AreWrittenInPartsAsInOne) {
    const DeviceBuffer buffer(0, kBytes);
    constexpr std::size_t kParts[] = {0, 4, 1'000'000, std::size_t{6} << 20, kBytes};
    for (std::size_t i = 1; i < std::size(kParts); ++i) {
        write_words(buffer.base(), kParts[i - 1], kParts[i], 1);
    }
    EXPECT_FALSE(find_wrong_word(buffer.base(), kBytes, 1));
}

TEST_F(Words, ThatAreWrongAreFoundWhereverTheyStand) {
    const DeviceBuffer buffer(0, kBytes);
    write_words(buffer.base(), 0, kBytes, 1);
    constexpr std::size_t kChunk = std::size_t{4} << 20;
    for (const std::size_t offset : {std::size_t{0}, std::size_t{65536}, std::size_t{1'000'000},
                                     kChunk - 4, kChunk, 2 * kChunk + 4, kBytes - 4}) {
        const std::uint32_t right = get(buffer.base() + offset);
        put(buffer.base() + offset, right + 1);
        const auto wrong = find_wrong_word(buffer.base(), kBytes, 1);
        ASSERT_TRUE(wrong) << offset;
        EXPECT_EQ(wrong->offset, offset);
        EXPECT_EQ(wrong->expected, right);
        EXPECT_EQ(wrong->seen, right + 1);
        put(buffer.base() + offset, right);
    }
    EXPECT_FALSE(find_wrong_word(buffer.base(), kBytes, 1));
}

TEST_F(Words, BelongToOnePlaceEach) {
    const DeviceBuffer buffer(0, kBytes);
    write_words(buffer.base(), 0, kBytes, 1);
    std::vector<std::uint32_t> words(kBytes / sizeof(std::uint32_t));
    copy_to_host(words.data(), buffer.base(), kBytes);
    std::sort(words.begin(), words.end());
    EXPECT_EQ(std::adjacent_find(words.begin(), words.end()), words.end());
}

}  // namespace
}  // namespace symm
