// The connection and its kernel: everything sent arrives.

#include "labs/04_shm_transport/connection/tests/connection_test.hpp"

namespace symm {
namespace {

using namespace testing;

// Posts three steps, and stores which step each thread takes for the next one.
struct PostKernel {
    ConnectionEnd end;
    simt::Timeout timeout;
    std::uint64_t* steps;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        ConnectionSender sender(block, end, {0, 1, timeout}, block.shared<EndState>());
        for (int i = 0; i < 3 && sender.acquire() != nullptr; ++i) {
            sender.post({});
        }
        steps[block.thread_rank()] = sender.step();
    }
};

TEST_F(Transfers, MovesAllThreadsOnBeyondStep2To32) {
    constexpr std::uint64_t kFirst = 0xffffffff;
    const Views by = connection(1);
    begin_at(by, kFirst);
    a.device.make_current();
    const PinnedMemory steps(kThreads * sizeof(std::uint64_t));
    launch(a.stream.get(), 1, kThreads,
           PostKernel{by.sender.end(0), a.timeout.timeout(), steps.as<std::uint64_t>()},
           sizeof(EndState));
    finish(a);
    EXPECT_EQ(by.memory->receive[0].tail, kFirst + 3);
    EXPECT_EQ(by.memory->sender_steps[0], kFirst + 3);
    for (unsigned t = 0; t < kThreads; ++t) {
        ASSERT_EQ(steps.as<std::uint64_t>()[t], kFirst + 3) << "the next step of thread " << t;
    }
}

TEST_F(Transfers, MovesWhatWasSentBeforeTheReceiverCame) {
    const Views by = connection(1);
    a.fill(1, 5 * kSlot);
    b.fill(1, 0);
    a.start(sending(a, by, 3 * kSlot));
    finish(a);
    ASSERT_EQ(by.memory->receive[0].tail, 3U) << "after a kernel that sends three slots";
    a.start(sending(a, by, 2 * kSlot, 3 * kSlot));
    finish(a);
    ASSERT_EQ(by.memory->receive[0].tail, 5U) << "after a second kernel, which sends two";
    b.start(receiving(b, by, 3 * kSlot));
    b.start(receiving(b, by, 2 * kSlot, 3 * kSlot));
    finish(b);
    b.expect(1, 0, 5 * kSlot);
}

TEST_F(Transfers, MovesMessagesOfAnySizeThroughAnyChannels) {
    unsigned message = 0;
    for (const std::uint32_t channels : {1, 3}) {
        const Views by = connection(channels);
        for (const std::size_t bytes :
             {1, 3, 16, 17, 127, 128, 129, 383, 385, 1023, 1024, 1025, 3073, 4099, 9001}) {
            move(by, ++message, bytes, channels == 1 ? a : b);
        }
    }
}

TEST_F(Transfers, MovesBytesFromAndToAnyAddress) {
    unsigned message = 200;
    const Views by = connection(2);
    for (const std::size_t offset : {1, 4, 8, 13}) {
        const std::size_t bytes = 1500 + offset;
        a.fill(++message, kMost);
        b.fill(message, 0);
        a.start(sending(a, by, bytes, offset));
        b.start(receiving(b, by, bytes, offset + 2));
        finish(a);
        finish(b);
        for (std::size_t i = 0; i < bytes; ++i) {
            ASSERT_EQ(b.destination.as<std::byte>()[offset + 2 + i],
                      expected_byte(message, 0, offset + i));
        }
        EXPECT_EQ(b.destination.as<std::byte>()[offset + 1], kPoison);
        EXPECT_EQ(b.destination.as<std::byte>()[offset + 2 + bytes], kPoison);
    }
}

TEST_F(Transfers, GoesOnWhereTheCountersStand) {
    // No run reaches 2^64 slots. That the counters may wrap shows that nothing depends on their
    // values.
    const Views by = connection(1);
    begin_at(by, ~std::uint64_t{0} - 4);
    move(by, 1, 3000, a);
    EXPECT_EQ(by.memory->send[0].head, 19U);  // 24 slots later
    EXPECT_EQ(by.memory->receive[0].tail, 19U);
}

// Data sent from the staging memory is not copied into slots.
TEST_F(Transfers, SendsFromTheStagingMemoryWithoutACopy) {
    const Views by = connection(2);
    std::byte* const staging = by.sender.buffer + by.sender.slots_bytes();
    for (unsigned message = 1; message <= 10; ++message) {
        const std::size_t bytes = 3000 + message;
        b.fill(message, 0);
        for (std::size_t i = 0; i < bytes; ++i) {
            staging[message + i] = expected_byte(message, 0, i);
        }
        std::memset(by.memory->buffer, 0x5a, by.sender.slots_bytes());
        TransferKernel kernel = kernel_of(a);
        kernel.outbound = {by.sender, staging + message, bytes, 1};
        a.start(kernel);
        b.start(receiving(b, by, bytes));
        finish(a);
        // The sender's kernel has ended, so the data may be written again, whatever the receiver's
        // kernel still does.
        std::memset(staging, 0x5b, ConnectionMemory::kStaging);
        finish(b);
        b.expect(message, 0, bytes);
        EXPECT_EQ(by.memory->buffer[0], std::byte{0x5a});
    }
}

}  // namespace
}  // namespace symm
