// Chunks of buffers that no machine here has the memory for.

#include "labs/bugs_that_shipped/chunk_range.hpp"

#include <gtest/gtest.h>

namespace symm::bugs_that_shipped {
namespace {

// One chunk after another, without a gap, to the end of the buffer.
void expect_whole(std::size_t count, std::size_t element_bytes, int chunks) {
    const std::size_t most = (count + chunks - 1) / chunks * element_bytes;
    std::size_t end = 0;
    for (int i = 0; i < chunks; ++i) {
        const ByteRange range = chunk_range(count, element_bytes, chunks, i);
        ASSERT_EQ(range.offset, end) << "chunk " << i << " of " << count << " elements of "
                                     << element_bytes << " bytes begins at the wrong byte";
        ASSERT_LE(range.bytes, most) << "chunk " << i << " of " << count << " is too long";
        ASSERT_EQ(range.bytes % element_bytes, 0)
            << "chunk " << i << " of " << count << " elements of " << element_bytes
            << " bytes cuts an element";
        end = range.offset + range.bytes;
    }
    ASSERT_EQ(end, count * element_bytes) << "the chunks of " << count << " elements of "
                                          << element_bytes << " bytes end at the wrong byte";
}

constexpr std::size_t kGiga = std::size_t{1} << 30;

TEST(ChunkRange, CoversSmallBuffers) {
    for (const std::size_t count : {0, 1, 3, 4, 5, 1000, 1001}) {
        expect_whole(count, 4, 4);
    }
    expect_whole(7, 8, 3);
}

TEST(ChunkRange, CoversBuffersOfMoreThanTwoGigabytes) {
    expect_whole(kGiga / 2 + 1, 4, 4);
    expect_whole(3 * kGiga / 2, 2, 3);
}

TEST(ChunkRange, CoversBuffersOfMoreThanFourGigabytes) {
    expect_whole(3 * kGiga / 2 + 1, 8, 4);
}

TEST(ChunkRange, CoversMoreElementsThanAnIntCounts) {
    expect_whole(3 * kGiga + 1, 1, 4);
    expect_whole(5 * kGiga + 3, 4, 7);
}

// A double has 53 bits for a whole number.
TEST(ChunkRange, CoversMoreElementsThanADoubleCounts) {
    expect_whole((std::size_t{1} << 56) + 1, 1, 4);
    expect_whole((std::size_t{1} << 54) + 3, 4, 3);
}

// Other chunks cover a buffer, too, but each rank has to know its own.
TEST(ChunkRange, IsThatOfTheTable) {
    for (const std::size_t count : {0, 1, 5, 1001}) {
        const std::size_t most = (count + 3) / 4;
        for (int i = 0; i < 4; ++i) {
            const ByteRange range = chunk_range(count, 4, 4, i);
            const std::size_t begin = std::min(i * most, count);
            EXPECT_EQ(range.offset, 4 * begin) << "chunk " << i << " of " << count << " elements";
            EXPECT_EQ(range.bytes, 4 * std::min(most, count - begin))
                << "chunk " << i << " of " << count << " elements";
        }
    }
}

}  // namespace
}  // namespace symm::bugs_that_shipped
