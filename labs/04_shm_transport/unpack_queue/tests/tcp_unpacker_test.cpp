// TcpUnpacker over loopback TCP: pieces of any length in any order, and errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "common/cuda/device.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "labs/04_shm_transport/unpack_queue/tcp_unpacker.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;  // on GPUs the block is named, too

constexpr std::size_t kUser = 200'000;

// Different for every message and place.
std::byte expected_byte(unsigned message, std::size_t index) {
    return static_cast<std::byte>(((index + 1) * 0x9e3779b97f4a7c15u ^ message * 0xc2b2ae3du) >>
                                  29);
}

class TcpUnpackerTest : public ::testing::Test {
protected:
    void SetUp() override {
        auto [client, server] = loopback_tcp_pair();
        sender = std::move(client);
        receiver = std::move(server);
        std::memset(user.data(), 0xa5, kUser);
    }
    // `length` bytes of the message, for `destination`.
    void send(unsigned message, std::size_t destination, std::size_t length) const {
        std::vector<std::byte> data(length);
        for (std::size_t i = 0; i < length; ++i) {
            data[i] = expected_byte(message, destination + i);
        }
        send_piece(sender, destination, data);
    }
    void expect(unsigned message, std::size_t first, std::size_t bytes) const {
        for (std::size_t i = 0; i < kUser; ++i) {
            const bool inside = i >= first && i < first + bytes;
            ASSERT_EQ(user.as<std::byte>()[i], inside ? expected_byte(message, i) : std::byte{0xa5})
                << "byte " << i << " of message " << message;
        }
    }
    std::string failure_of(TcpUnpacker& unpacker) const {
        return testing::text_thrown_by([&] { unpacker.finish(stream); });
    }

    Device device{0};
    Stream stream;
    PinnedMemory user{kUser};
    UniqueFd sender;
    UniqueFd receiver;
};
TEST_F(TcpUnpackerTest, MovesPiecesOfAnyLengthInAnyOrder) {
    TcpUnpacker unpacker(std::move(receiver), 1, 0, 8192);
    std::mt19937 random(7);
    for (unsigned message = 1; message <= 5; ++message) {
        const std::size_t first = message * 13;
        const std::size_t bytes = 150'000 + message;
        std::memset(user.data(), 0xa5, kUser);
        std::vector<std::pair<std::size_t, std::size_t>> pieces;  // destination, length
        for (std::size_t done = 0; done < bytes;) {
            const std::size_t length =
                std::min<std::size_t>(bytes - done, 1 + random() % (random() % 4 == 0 ? 9000 : 90));
            pieces.emplace_back(first + done, length);
            done += length;
        }
        std::shuffle(pieces.begin(), pieces.end(), random);
        unpacker.receive(user.address(), kUser, bytes, stream.get());
        for (const auto& [destination, length] : pieces) {
            send(message, destination, length);
        }
        EXPECT_EQ(failure_of(unpacker), "");
        expect(message, first, bytes);
    }
}

TEST_F(TcpUnpackerTest, RefusesMoreThanAnyMemory) {
    TcpUnpacker unpacker(std::move(receiver), 1, 0, 8192);
    EXPECT_THROW(unpacker.receive(user.address(), ~std::size_t{0}, 100, stream.get()),
                 std::invalid_argument);
    EXPECT_THROW(unpacker.receive(user.address(), kUser, ~std::size_t{0}, stream.get()),
                 std::invalid_argument);
}

TEST_F(TcpUnpackerTest, MovesWhatCameBeforeItsKernel) {
    TcpUnpacker unpacker(std::move(receiver), 1, 0, 8192);
    std::thread sending([&] {
        send(1, 0, 40'000);
        send(1, 40'000, 60'000);
    });
    std::this_thread::sleep_for(50ms);
    unpacker.receive(user.address(), kUser, 40'000, stream.get());
    unpacker.receive(user.address(), kUser, 60'000, stream.get());
    EXPECT_EQ(failure_of(unpacker), "");
    sending.join();
    expect(1, 0, 100'000);
}

TEST_F(TcpUnpackerTest, MovesMorePiecesThanTheQueueHolds) {
    constexpr std::size_t kPieces = 3 * kUnpackDepth;
    TcpUnpacker unpacker(std::move(receiver), 1, 0);
    for (std::size_t i = 0; i < kPieces; ++i) {
        send(1, i, 1);
    }
    std::this_thread::sleep_for(50ms);
    unpacker.receive(user.address(), kUser, kPieces, stream.get());
    EXPECT_EQ(failure_of(unpacker), "");
    expect(1, 0, kPieces);
}

TEST_F(TcpUnpackerTest, MovesPiecesToAnyAddress) {
    TcpUnpacker unpacker(std::move(receiver), 1, 0);
    for (const std::size_t shift : {1, 2, 8, 15}) {
        unpacker.receive(user.address() + shift, kUser - shift, 1000, stream.get());
        send(1, 5, 1000);
        EXPECT_EQ(failure_of(unpacker), "");
        for (std::size_t i = 5; i < 1005; ++i) {
            ASSERT_EQ(user.as<std::byte>()[shift + i], expected_byte(1, i)) << "byte " << i;
        }
    }
}

TEST_F(TcpUnpackerTest, SaysWhenTheSenderEndsTooEarlyOrWithinAHeader) {
    const auto failure_after = [this](const auto& last_words) {
        SetUp();
        TcpUnpacker unpacker(std::move(receiver), 1, 0);
        unpacker.receive(user.address(), kUser, 100, stream.get());
        last_words();
        sender = {};
        return failure_of(unpacker);
    };
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(failure_after([this] { send(1, 0, 40); }),
              "rank 0 closed its TCP connection 60 bytes before the end of a message");
    EXPECT_EQ(failure_after([this] { ASSERT_EQ(::send(sender.get(), "half", 4, 0), 4); }),
              "rank 0 closed its TCP connection within a header");
    EXPECT_LT(std::chrono::steady_clock::now() - start, 25s);
}

TEST_F(TcpUnpackerTest, SaysForWhatItWaitedInVain) {
    TcpUnpacker unpacker(std::move(receiver), 1, 0, 1024, 200ms);
    unpacker.receive(user.address(), kUser, 100, stream.get());
    send(1, 0, 40);
    EXPECT_THAT(failure_of(unpacker), StartsWith("rank 1 waited 0.2 s in a kernel for a filled "
                                                 "FIFO slot from rank 0: expected 2, saw 1"));
}

}  // namespace
}  // namespace symm
