// The connection and its kernel alone: memory from cuMemHostAlloc, two GPUs of one process, no
// transport. It needs nothing of this lab's library, so that it can be built again with one order
// or sync taken out (SYMM_MUTANT_CONNECTION_*): ThreadSanitizer has to report each of those.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>

#include "common/cuda/device.hpp"
#include "common/cuda/graph.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/pinned_memory.hpp"
#include "common/cuda/stream.hpp"
#include "labs/04_shm_transport/transfer.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSlot = 128;
constexpr unsigned kThreads = 16;
constexpr std::size_t kMost = 16 * 1024;
constexpr std::byte kPoison{0xa5};

// Different for every message, sender and place.
std::byte expected_byte(unsigned message, int sender, std::size_t index) {
    const std::uint64_t mixed = (index + 1) * 0x9e3779b97f4a7c15u ^
                                (message * 2u + static_cast<unsigned>(sender)) * 0xc2b2ae3du;
    return static_cast<std::byte>(mixed >> 29);
}

// One rank: its GPU, what it sends and where it receives.
struct Side {
    Side(int number, std::chrono::nanoseconds limit)
        : rank(number),
          device(number % device_count()),
          source(kMost),
          destination(kMost),
          timeout(limit) {}

    void fill(unsigned message, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; ++i) {
            source.as<std::byte>()[i] = expected_byte(message, rank, i);
        }
        std::memset(destination.data(), static_cast<int>(kPoison), kMost);
    }

    // Exactly the message, and nothing written behind or before it.
    void expect(unsigned message, int sender, std::size_t bytes, std::size_t offset = 0) const {
        for (std::size_t i = 0; i < kMost; ++i) {
            const bool inside = i >= offset && i < offset + bytes;
            const std::byte right = inside ? expected_byte(message, sender, i - offset) : kPoison;
            ASSERT_EQ(destination.as<std::byte>()[i], right)
                << "message " << message << " of " << bytes << " bytes, byte " << i;
        }
    }

    void start(const TransferKernel& kernel) const {
        device.make_current();
        launch(stream.get(), kernel.blocks(), kThreads, kernel, sizeof(EndState));
    }

    int rank;
    Device device;
    Stream stream;
    PinnedMemory source;
    PinnedMemory destination;
    KernelTimeout timeout;
};

// One block with both a receiver and a sender: it passes on what it receives, slot by slot.
struct RelayKernel {
    TransferKernel transfer;  // its inbound and outbound have one channel, and no data of their own

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const auto& [outbound, inbound, rank, timeout] = transfer;
        auto* states = block.shared<EndState>();
        ConnectionReceiver receiver(block, inbound.connection.end(0), {rank, inbound.peer, timeout},
                                    &states[0]);
        ConnectionSender sender(block, outbound.connection.end(0), {rank, outbound.peer, timeout},
                                &states[1]);
        for (std::uint64_t k = 0; k < inbound.chunks(); ++k) {
            const std::uint64_t bytes = inbound.chunk_bytes(k);
            const std::byte* full = receiver.acquire(bytes, inbound.left(k));
            std::byte* empty = sender.acquire();
            if (full == nullptr || empty == nullptr) {
                return;
            }
            copy_with_block(block, empty, full, bytes);
            sender.post({StepMode::kNormal, 0, bytes, outbound.left(k)});
            receiver.release();
        }
    }
};

// Everything that a connection has, in one piece of memory.
struct ConnectionMemory {
    static constexpr std::uint32_t kMostChannels = 4;
    static constexpr std::size_t kStaging = 4096;
    SendMem send[kMostChannels];
    RecvMem receive[kMostChannels];
    std::uint64_t sender_steps[kMostChannels];
    std::uint64_t receiver_steps[kMostChannels];
    alignas(128) std::byte buffer[kMostChannels * kSteps * kSlot + kStaging];
};

class Transfers : public testing::Test {
protected:
    Transfers() : a(0, 60s), b(1, 60s) {}

    // Both sides' views of a connection.
    struct Views {
        ConnectionMemory* memory;
        Connection sender;
        Connection receiver;
    };
    Views connection(std::uint32_t channels, int direction = 0) {
        auto* all = memory.as<ConnectionMemory>() + direction;
        Connection view{all->send,   all->receive, all->sender_steps,
                        all->buffer, kSlot,        ConnectionMemory::kStaging,
                        channels};
        const Connection sender = view;
        view.steps = all->receiver_steps;
        return {all, sender, view};
    }
    // The counters of channel 0, as if so many steps had been made.
    static void begin_at(const Views& by, std::uint64_t step) {
        by.memory->send[0].head = by.memory->receive[0].tail = step;
        by.memory->sender_steps[0] = by.memory->receiver_steps[0] = step;
    }
    TransferKernel kernel_of(Side& side) {
        TransferKernel kernel{};
        kernel.rank = side.rank;
        kernel.timeout = side.timeout.timeout();
        return kernel;
    }
    TransferKernel sending(Side& side, const Views& by, std::size_t bytes, std::size_t offset = 0) {
        TransferKernel kernel = kernel_of(side);
        kernel.outbound = {by.sender, side.source.as<std::byte>() + offset, bytes, 1 - side.rank};
        return kernel;
    }
    TransferKernel receiving(Side& side, const Views& by, std::size_t bytes,
                             std::size_t offset = 0) {
        TransferKernel kernel = kernel_of(side);
        kernel.inbound = {by.receiver, side.destination.as<std::byte>() + offset, bytes,
                          1 - side.rank};
        return kernel;
    }
    static void finish(Side& side) { side.timeout.synchronize(side.stream, "the transfer"); }
    // A number of the text that finish() throws.
    static std::string failure_of(Side& side) {
        try {
            finish(side);
        } catch (const std::exception& error) {
            return error.what();
        }
        return "no failure";
    }
    static void make_impatient(Side& side) {
        side.device.make_current();
        side.timeout = KernelTimeout(200ms);
    }

    Side a;
    Side b;
    PinnedMemory memory{2 * sizeof(ConnectionMemory)};
};

TEST_F(Transfers, MovesMessagesOfAnySize) {
    unsigned message = 0;
    const Views by = connection(1);
    for (const std::size_t bytes : {1, 3, 16, 17, 127, 128, 129, 1023, 1024, 1025, 4099}) {
        a.fill(++message, bytes);
        b.fill(message, bytes);
        a.start(sending(a, by, bytes));
        b.start(receiving(b, by, bytes));
        finish(a);
        finish(b);
        b.expect(message, 0, bytes);
    }
}

TEST_F(Transfers, MovesMessagesThroughSeveralChannels) {
    unsigned message = 100;
    const Views by = connection(3);
    for (const std::size_t bytes : {5, 200, 383, 384, 385, 3073, 9001}) {
        a.fill(++message, bytes);
        b.fill(message, bytes);
        b.start(receiving(b, by, bytes));
        a.start(sending(a, by, bytes));
        finish(a);
        finish(b);
        b.expect(message, 0, bytes);
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

TEST_F(Transfers, QueuedTransfersDoNotOvertakeEachOther) {
    const Views by = connection(2);
    constexpr std::size_t kBytes = 700;  // six slots in two channels
    constexpr unsigned kMessages = 20;
    a.fill(7, kMost);
    b.fill(7, 0);
    for (unsigned i = 0; i < kMessages; ++i) {
        a.start(sending(a, by, kBytes, i * 16));
        b.start(receiving(b, by, kBytes, i * kBytes / 4 * 4));
    }
    finish(a);
    finish(b);
    for (unsigned i = 0; i < kMessages; ++i) {
        for (std::size_t j = 0; j < kBytes; ++j) {
            ASSERT_EQ(b.destination.as<std::byte>()[i * kBytes + j],
                      expected_byte(7, 0, i * 16 + j))
                << "message " << i << ", byte " << j;
        }
    }
}

TEST_F(Transfers, GoesOnWhereTheCountersStand) {
    // 2^64 slots never come to pass; that the counters may wrap shows that nothing depends on
    // where they are.
    const Views by = connection(1);
    begin_at(by, ~std::uint64_t{0} - 4);
    a.fill(1, 3000);
    b.fill(1, 3000);
    a.start(sending(a, by, 3000));
    b.start(receiving(b, by, 3000));
    finish(a);
    finish(b);
    b.expect(1, 0, 3000);
    EXPECT_EQ(by.memory->send[0].head, 19U);  // 24 slots later
    EXPECT_EQ(by.memory->receive[0].tail, 19U);
}

TEST_F(Transfers, SendsAndReceivesAtOnce) {
    // More than the slots hold in both directions: one after the other would wait for ever.
    const Views forth = connection(2, 0);
    const Views back = connection(2, 1);
    for (unsigned message = 1; message <= 5; ++message) {
        const std::size_t there = 5000 + message;
        const std::size_t here = 6000 - message;
        a.fill(message, there);
        b.fill(message, here);
        TransferKernel on_a = sending(a, forth, there);
        on_a.inbound = receiving(a, back, here).inbound;
        TransferKernel on_b = sending(b, back, here);
        on_b.inbound = receiving(b, forth, there).inbound;
        a.start(on_a);
        b.start(on_b);
        finish(a);
        finish(b);
        b.expect(message, 0, there);
        a.expect(message, 1, here);
    }
}

TEST_F(Transfers, TwoEndpointsInOneBlockHaveTheirOwnSteps) {
    const Views forth = connection(1, 0);
    const Views back = connection(1, 1);
    begin_at(back, 1003);  // so that the two steps differ
    for (unsigned message = 1; message <= 20; ++message) {
        const std::size_t bytes = 3000 + message;
        a.fill(message, bytes);
        TransferKernel on_a = sending(a, forth, bytes);
        on_a.inbound = receiving(a, back, bytes).inbound;
        TransferKernel relayed = receiving(b, forth, bytes);
        relayed.outbound = sending(b, back, bytes).outbound;
        a.start(on_a);
        b.device.make_current();
        launch(b.stream.get(), 1, kThreads, RelayKernel{relayed}, 2 * sizeof(EndState));
        finish(a);
        finish(b);
        a.expect(message, 0, bytes);
    }
}

TEST_F(Transfers, CanBeReplayedInAGraph) {
    const Views by = connection(2);
    constexpr std::size_t kBytes = 2500;
    a.device.make_current();
    const Graph sends = Graph::capture(a.stream.get(), [&] { a.start(sending(a, by, kBytes)); });
    b.device.make_current();
    const Graph receives =
        Graph::capture(b.stream.get(), [&] { b.start(receiving(b, by, kBytes)); });
    for (unsigned message = 1; message <= 5; ++message) {
        a.fill(message, kBytes);
        b.fill(message, kBytes);
        a.device.make_current();
        sends.launch(a.stream.get());
        b.device.make_current();
        receives.launch(b.stream.get());
        finish(a);
        finish(b);
        b.expect(message, 0, kBytes);
    }
}

TEST_F(Transfers, ReceiverNamesASenderThatDoesNotCome) {
    make_impatient(b);
    b.fill(1, 0);
    b.start(receiving(b, connection(2), 1000));
    EXPECT_EQ(
        failure_of(b),
        "rank 1 waited 0.2 s in a kernel for a filled FIFO slot of rank 0: expected 1, saw 0");
    b.expect(1, 0, 0);  // and nothing was written
}

TEST_F(Transfers, SenderThatGivesUpLeavesTheSlotsAlone) {
    const Views by = connection(1);
    make_impatient(a);
    a.fill(1, 2000);  // 16 slots for a FIFO of 8
    a.start(sending(a, by, 2000));
    EXPECT_EQ(failure_of(a),
              "rank 0 waited 0.2 s in a kernel for a free FIFO slot of rank 1: expected 1, saw 0");
    EXPECT_EQ(by.memory->receive[0].tail, 8U);

    // What had been sent is still right, and the rest never comes: no wrong data is taken for
    // right.
    make_impatient(b);
    b.fill(1, 0);
    b.start(receiving(b, by, 2000));
    EXPECT_EQ(
        failure_of(b),
        "rank 1 waited 0.2 s in a kernel for a filled FIFO slot of rank 0: expected 9, saw 8");
    b.expect(1, 0, 8 * kSlot);
}

TEST_F(Transfers, ReceiverNoticesAMessageOfAnotherLength) {
    const Views by = connection(2);
    a.fill(1, 1000);
    b.fill(1, 0);
    a.start(sending(a, by, 1000));
    b.start(receiving(b, by, 1024));
    finish(a);                                  // it fits into the slots
    const std::string failure = failure_of(b);  // of the channel that noticed first
    EXPECT_TRUE(
        failure.starts_with("rank 1 expected 1024 more bytes of a message from rank 0, which sends "
                            "1000: both sides must name the same number of bytes") ||
        failure.starts_with("rank 1 expected 896 more bytes of a message from rank 0, which sends "
                            "872: both sides must name the same number of bytes"))
        << failure;
    b.expect(1, 0, 0);
}

// What is sent from the staging memory is not copied into slots.
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

TEST_F(Transfers, ReceiverRefusesAnEntryThatPointsOutsideTheBuffer) {
    const Views by = connection(1);
    const std::uint64_t buffer_bytes = by.receiver.end(0).buffer_bytes;
    struct Bad {
        StepMode mode;
        std::uint64_t offset;
        std::uint64_t size;
    };
    for (const Bad& bad : {Bad{StepMode::kOffset, buffer_bytes - 99, 100},
                           Bad{StepMode::kOffset, ~std::uint64_t{0} - 49, 100},
                           Bad{StepMode::kOffset, std::uint64_t{1} << 40, 100},
                           Bad{static_cast<StepMode>(7), 0, 100}}) {
        begin_at(by, 0);
        by.memory->receive[0].fifo[0] = {bad.mode, bad.offset, bad.size, bad.size};
        by.memory->receive[0].tail = 1;
        b.device.make_current();
        b.timeout = KernelTimeout(60s);
        b.fill(1, 0);
        b.start(receiving(b, by, 100));
        EXPECT_EQ(failure_of(b), "rank 1 refused a step of rank 0: its data at offset " +
                                     std::to_string(bad.offset) +
                                     " does not lie in the connection's buffer of " +
                                     std::to_string(buffer_bytes) + " bytes");
        b.expect(1, 0, 0);
        EXPECT_EQ(by.memory->send[0].head, 0U);
    }
}

}  // namespace
}  // namespace symm
