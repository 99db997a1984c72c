#pragma once
/// \file
/// Shared by the tests of single steps: channels in pinned memory, and two sides that a test
/// launches kernels for. Only .cu files may include this.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/pinned_memory.hpp"
#include "common/cuda/stream.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "labs/05_device_prims/ring/ring_ends.hpp"

namespace symm::testing {

using namespace std::chrono_literals;

constexpr std::uint64_t kSlotBytes = 2048;
constexpr std::size_t kMost = 480;  ///< Elements of a step of LL128, which has the most.

/// A channel of a connection from one side to the other.
struct Channel {
    SendMem send;
    RecvMem receive;
    std::uint64_t sent;  ///< The counts of steps.
    std::uint64_t received;
    alignas(128) std::byte slots[kSteps * kSlotBytes];

    Connection to_next() { return {&send, &receive, &sent, slots, kSlotBytes, 0, 1}; }
    Connection from_prev() { return {&send, &receive, &received, slots, kSlotBytes, 0, 1}; }
};

/// The most elements of a step of the protocol.
template <class Proto>
constexpr std::size_t most_elements() {
    return std::min(kMost, Proto::step_elements(kSlotBytes));
}

/// Element `index` of step `step`.
__host__ __device__ inline std::int32_t value_of(std::uint32_t step, std::size_t index) {
    return static_cast<std::int32_t>(step * 1000003U + static_cast<std::uint32_t>(index) * 7U + 1U);
}

/// Steps of a rank, each of `count` elements, at most most_elements().
struct StepsParams {
    Connection from_prev;
    Connection to_next;
    int rank;
    std::uint32_t steps;
    std::size_t count;
    simt::Timeout timeout;
};

/// A group makes all steps of the call: it sends the parts of `data`, or receives into them. Part
/// s has kMost elements, for step s.
template <class Proto, class Group>
__host__ __device__ void make_steps(const Group& group, const StepsParams& call, bool sends,
                                    std::int32_t* data, typename Proto::Shared* shared) {
    std::uint64_t unused = 0;  // the steps of the end that the group does not use (ring_ends.hpp)
    RingEnds ends{call.from_prev.end(0), call.to_next.end(0), call.rank,
                  1 - call.rank,         1 - call.rank,       call.timeout};
    (sends ? ends.from_prev : ends.to_next).step = &unused;
    Proto protocol(group, ends, {ReduceOp::kSum, 2}, {}, shared);
    Primitives<Proto, std::int32_t> prims(protocol);
    for (std::uint32_t step = 0; step < call.steps; ++step) {
        std::int32_t* part = data + step * kMost;
        sends ? prims.send(part, call.count) : prims.recv(part, call.count);
    }
    protocol.finish();
}

/// A block makes the steps: rank 0 sends, rank 1 receives.
template <class Proto>
struct StepsKernel {
    StepsParams call;
    std::int32_t* data;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        make_steps<Proto>(block, call, call.rank == 0, data,
                          block.shared<typename Proto::Shared>());
    }
};

/// A rank of a test: its device, and the data of at most 64 steps.
struct Side {
    Side(int number, std::chrono::nanoseconds limit)
        : rank(number),
          device(number % device_count()),
          timeout(limit),
          data(64 * kMost * sizeof(std::int32_t)) {}

    std::int32_t* elements() const { return data.as<std::int32_t>(); }
    /// Launches a block for this rank.
    template <class Kernel>
    void start(const Kernel& kernel, unsigned threads, std::size_t shared_bytes = 0) {
        device.make_current();
        launch(stream.get(), 1, threads, kernel, shared_bytes);
    }
    /// Waits for its kernels. Throws if one gave up.
    void wait(std::string_view what) { timeout.synchronize(stream, what); }
    /// The text that wait() throws; empty if it throws nothing.
    std::string error() {
        return text_thrown_by([&] { wait("a kernel"); });
    }

    int rank;
    Device device;
    Stream stream;
    KernelTimeout timeout;
    PinnedMemory data;
};

/// Two ranks and two channels.
class TwoSides : public ::testing::Test {
protected:
    /// A wait of the tests' kernels may last `limit`.
    explicit TwoSides(std::chrono::nanoseconds limit) : sender{0, limit}, receiver{1, limit} {}

    Channel& channel(int number = 0) const { return memory.as<Channel>()[number]; }

    StepsParams call(const Side& side, std::uint32_t steps, std::size_t count) const {
        return {channel().from_prev(), channel().to_next(), side.rank, steps, count,
                side.timeout.timeout()};
    }

    /// Sets a side's data for the steps from `first` on: what it sends, or zeros if it receives.
    static void fill(const Side& side, std::uint32_t first, std::uint32_t steps) {
        for (std::uint32_t step = 0; step < steps; ++step) {
            for (std::size_t i = 0; i < kMost; ++i) {
                side.elements()[step * kMost + i] = side.rank == 0 ? value_of(first + step, i) : 0;
            }
        }
    }

    template <template <class, class> class ProtocolOf>
    void start(Side& side, std::uint32_t first, std::uint32_t steps, std::size_t count,
               unsigned threads) {
        fill(side, first, steps);
        using Proto = ProtocolOf<std::int32_t, simt::ThreadBlock>;
        side.start(StepsKernel<Proto>{call(side, steps, count), side.elements()}, threads,
                   sizeof(typename Proto::Shared));
    }

    /// Waits for both sides and checks what rank 1 received.
    void finish(std::uint32_t first, std::uint32_t steps, std::size_t count) {
        sender.wait("sending");
        receiver.wait("receiving");
        for (std::uint32_t step = 0; step < steps; ++step) {
            for (std::size_t i = 0; i < count; ++i) {
                ASSERT_EQ(receiver.elements()[step * kMost + i], value_of(first + step, i))
                    << "wrong element " << i << " of step " << step;
            }
        }
    }

    Side sender;
    Side receiver;
    PinnedMemory memory{2 * sizeof(Channel)};
};

}  // namespace symm::testing
