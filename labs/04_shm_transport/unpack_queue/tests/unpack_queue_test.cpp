// The kernel of the unpack queue with descriptors that may be wrong: it refuses a piece that leaves
// a buffer, and accepts one that ends with it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "common/cuda/device.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/stream.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "labs/04_shm_transport/host_memory/pinned_calloc.hpp"
#include "labs/04_shm_transport/unpack_queue/unpack_queue.hpp"

namespace symm {
namespace {

class UnpackQueueTest : public ::testing::Test {
protected:
    static constexpr std::uint64_t kBytes = 1000;      // in the bounce buffer
    static constexpr std::uint64_t kUserBytes = 1300;  // in the user's buffer
    static constexpr std::uint64_t kAround = 1400;     // before and after them, unused
    static constexpr std::uint64_t kLast = ~std::uint64_t{0};
    // Where a piece of 100 bytes must not begin in a buffer of `bytes` bytes.
    static std::vector<std::uint64_t> outside(std::uint64_t bytes) {
        return {bytes - 99, bytes,      kBytes + kUserBytes,   kLast / 2 - 50,
                kLast - 99, kLast - 50, std::uint64_t{1} << 40};
    }

    // The kernel's error for a queue with these descriptors, which bring a message of `bytes`.
    std::string failure_of(std::initializer_list<UnpackDescriptor> pieces, std::uint64_t bytes) {
        std::copy(pieces.begin(), pieces.end(), queue().descriptors);
        queue().tail = pieces.size();
        return failure(bytes);
    }
    std::string failure(std::uint64_t bytes) {
        std::memset(around_user.data(), 0xa5, around_user.size());
        std::memset(bounce, 0x11, kBytes);
        KernelTimeout timeout(Deadline::standard_limit());
        launch_unpack(stream.get(),
                      {&queue(), bounce, kBytes, around_user.as<std::byte>() + kAround, kUserBytes,
                       bytes, timeout.timeout(), 1, 0});
        return testing::text_thrown_by([&] { timeout.synchronize(stream, "the kernel"); });
    }
    void expect_refused(const UnpackDescriptor& piece) {
        queue() = {};
        SCOPED_TRACE("source " + std::to_string(piece.source) + ", destination " +
                     std::to_string(piece.destination) + ", length " +
                     std::to_string(piece.length));
        expect_refusal_of(failure_of({piece}, piece.length), piece.destination);
        expect_heads(0);
        expect_stored(0);
    }
    static void expect_refusal_of(const std::string& failure, std::uint64_t destination) {
        const std::string right =
            "rank 1 refused a piece from rank 0 for offset " + std::to_string(destination);
        EXPECT_EQ(failure.substr(0, right.size()), right) << failure;
    }
    void expect_heads(std::uint64_t all) {
        for (const std::uint64_t head : queue().heads) {
            EXPECT_EQ(head, all);
        }
    }
    void expect_stored(std::size_t bytes) const {
        for (std::size_t i = 0; i < around_user.size(); ++i) {
            const bool inside = i >= kAround && i < kAround + bytes;
            ASSERT_EQ(around_user.as<unsigned char>()[i], inside ? 0x11 : 0xa5)
                << "byte " << static_cast<std::ptrdiff_t>(i - kAround);
        }
    }
    UnpackQueue& queue() { return *memory.as<UnpackQueue>(); }

    Device device{0};
    Stream stream;
    PinnedMemory memory = pinned_calloc(sizeof(UnpackQueue));
    PinnedMemory around_bounce = pinned_calloc(kBytes + 2 * kAround);
    PinnedMemory around_user = pinned_calloc(kUserBytes + 2 * kAround);
    std::byte* bounce = around_bounce.as<std::byte>() + kAround;
};

TEST_F(UnpackQueueTest, TakesPiecesThatEndWithTheBuffers) {
    EXPECT_EQ(failure_of({{kBytes - 100, 100, 0}, {0, kBytes, 100}, {0, 200, 1100}}, kUserBytes),
              "");
    expect_stored(kUserBytes);
    expect_heads(3);
}

// The nearest ones first: at an address that is far away there may be no memory at all.
TEST_F(UnpackQueueTest, RefusesAPieceOutsideTheBounceBuffer) {
    for (const std::uint64_t source : outside(kBytes)) {
        expect_refused({source, 100, 0});
        ASSERT_FALSE(HasFailure());
    }
}

TEST_F(UnpackQueueTest, RefusesAPieceLongerThanTheBounceBuffer) {
    expect_refused({200, kUserBytes, 0});
}

TEST_F(UnpackQueueTest, RefusesAPieceOutsideTheUsersBuffer) {
    for (const std::uint64_t destination : outside(kUserBytes)) {
        expect_refused({0, 100, destination});
        ASSERT_FALSE(HasFailure());
    }
}

TEST_F(UnpackQueueTest, RefusesAPieceLongerThanWhatIsMissing) {
    queue() = {};
    expect_refusal_of(failure_of({{0, 100, 7}}, 99), 7);
    expect_stored(0);
    queue() = {};
    expect_refusal_of(failure_of({{0, 60, 0}, {0, 60, 60}}, 100), 60);
}

// Two messages of 100 bytes, beyond step 2^32.
TEST_F(UnpackQueueTest, LeavesThePiecesOfTheNextMessage) {
    queue() = {};
    constexpr std::uint64_t kFirst = 0xffffffff;
    for (std::uint64_t& head : queue().heads) {
        head = kFirst;
    }
    queue().descriptors[kFirst % kUnpackDepth] = {0, 100, 0};
    queue().descriptors[(kFirst + 1) % kUnpackDepth] = {0, 100, 0};
    queue().tail = kFirst + 2;
    for (const std::uint64_t message : {1, 2}) {
        EXPECT_EQ(failure(100), "");
        expect_stored(100);
        expect_heads(kFirst + message);
        ASSERT_FALSE(HasFailure()) << "message " << message;
    }
}

// An empty piece would not advance the kernel.
TEST_F(UnpackQueueTest, RefusesAnEmptyPiece) {
    queue() = {};
    expect_refusal_of(failure_of({{0, 0, 7}}, 100), 7);
    expect_heads(0);
}

// More descriptors than the queue holds: the kernel must not end as if all were well.
TEST_F(UnpackQueueTest, RefusesAnImpossibleTail) {
    queue().tail = kUnpackDepth + 1;
    EXPECT_NE(failure(100), "");
    expect_heads(0);
}

}  // namespace
}  // namespace symm
