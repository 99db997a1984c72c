#pragma once
/// \file
/// Shared by the tests of the connection: two GPUs of one process, and connections between them in
/// memory from cuMemHostAlloc. They use no transport, and nothing of this lab's library.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>

#include "common/cuda/device.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/pinned_memory.hpp"
#include "common/cuda/stream.hpp"
#include "common/sys/deadline.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "labs/04_shm_transport/connection/transfer_kernel.hpp"

namespace symm::testing {

using namespace std::chrono_literals;

inline constexpr std::uint64_t kSlot = 128;
inline constexpr unsigned kThreads = 16;
inline constexpr std::size_t kMost = 16 * 1024;
inline constexpr std::byte kPoison{0xa5};

// Different for every message, sender and place.
inline std::byte expected_byte(unsigned message, int sender, std::size_t index) {
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

    // Exactly the message, and nothing written before or after it.
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

class Transfers : public ::testing::Test {
protected:
    Transfers() : a(0, Deadline::standard_limit()), b(1, Deadline::standard_limit()) {}

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
    // Sets the counters of channel 0 as if `step` steps had been made.
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
    // Moves one message of `bytes` from a to b, and checks it. Starts `first` before the other.
    void move(const Views& by, unsigned message, std::size_t bytes, const Side& first) {
        a.fill(message, bytes);
        b.fill(message, bytes);
        const auto start = [&](Side& side) {
            side.start(&side == &a ? sending(a, by, bytes) : receiving(b, by, bytes));
        };
        start(&first == &a ? a : b);
        start(&first == &a ? b : a);
        finish(a);
        finish(b);
        b.expect(message, 0, bytes);
    }
    static void finish(Side& side) { side.timeout.synchronize(side.stream, "the transfer"); }
    static std::string failure_of(Side& side) {
        return text_thrown_by([&] { finish(side); });
    }
    static void make_impatient(Side& side) {
        side.device.make_current();
        side.timeout = KernelTimeout(200ms);
    }

    Side a;
    Side b;
    PinnedMemory memory{2 * sizeof(ConnectionMemory)};
};

}  // namespace symm::testing
