// Single steps of LL and LL128 between two ranks: credits, the return of flags, whole lines. Can be
// built again with one wait, sync or check taken out.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "common/cuda/device.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/pinned_memory.hpp"
#include "common/cuda/stream.hpp"
#include "labs/05_device_prims/ll.hpp"
#include "labs/05_device_prims/ll128.hpp"
#include "labs/05_device_prims/primitives.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSlotBytes = 2048;
constexpr std::size_t kMost = 480;  // elements: of a step of LL128, which has the most

// A block whose last thread is slow: it takes its packets after the others have taken theirs.
struct SlowBlock : simt::ThreadBlock {
    __host__ __device__ explicit SlowBlock(const simt::ThreadBlock& block)
        : simt::ThreadBlock(block) {}
    __host__ __device__ unsigned thread_rank() const {
        const unsigned rank = simt::ThreadBlock::thread_rank();
        NV_IF_TARGET(NV_IS_HOST, (if (rank == size() - 1) { std::this_thread::sleep_for(1ms); }))
        return rank;
    }
};

__host__ __device__ std::int32_t value_of(std::uint32_t step, std::size_t index) {
    return static_cast<std::int32_t>(step * 1000003U + static_cast<std::uint32_t>(index) * 7U + 1U);
}

// Rank 0 sends steps, rank 1 receives them into parts of `data`.
template <template <class, class> class ProtocolOf, class Group>
struct StepsKernel {
    using Proto = ProtocolOf<std::int32_t, Group>;

    Connection connection;
    std::int32_t* data;  // kMost elements per step
    int rank;
    std::uint32_t first;
    std::uint32_t steps;
    std::size_t count;
    simt::Timeout timeout;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const RingEnds ends{connection.end(0), connection.end(0), rank,
                            1 - rank,          1 - rank,          timeout};
        Proto protocol(Group(block), ends, {ReduceOp::kSum, 2}, {},
                       block.shared<typename Proto::Shared>());
        Primitives<Proto, std::int32_t> prims(protocol);
        for (std::uint32_t step = first; step < first + steps; ++step) {
            std::int32_t* part = data + (step - first) * kMost;
            rank == 0 ? prims.send(part, count) : prims.recv(part, count);
        }
        // finish() would store both counts of steps, and here both ends share the addresses.
    }
};

class SingleSteps : public ::testing::Test {
protected:
    struct Memory {
        SendMem send;
        RecvMem receive;
        std::uint64_t step[2];  // of either rank
        alignas(128) std::byte slots[kSteps * kSlotBytes];
    };
    struct Side {
        explicit Side(int number)
            : rank(number),
              device(number % device_count()),
              timeout(3s),
              data(64 * kMost * sizeof(std::int32_t)) {}
        int rank;
        Device device;
        Stream stream;
        KernelTimeout timeout;
        PinnedMemory data;
    };

    // Both ranks' counters, as if so many steps had been made.
    void begin_at(std::uint64_t step) { all().send.head = all().step[0] = all().step[1] = step; }
    Memory& all() { return *memory.as<Memory>(); }

    template <template <class, class> class ProtocolOf, class Group = simt::ThreadBlock>
    void start(Side& side, std::uint32_t first, std::uint32_t steps, std::size_t count,
               unsigned threads) {
        auto* data = side.data.as<std::int32_t>();
        for (std::uint32_t step = 0; step < steps; ++step) {
            for (std::size_t i = 0; i < kMost; ++i) {
                data[step * kMost + i] = side.rank == 0 ? value_of(first + step, i) : 0;
            }
        }
        const Connection connection{
            &all().send, &all().receive, &all().step[side.rank], all().slots, kSlotBytes, 0, 1};
        using Kernel = StepsKernel<ProtocolOf, Group>;
        side.device.make_current();
        launch(side.stream.get(), 1, threads,
               Kernel{connection, data, side.rank, first, steps, count, side.timeout.timeout()},
               sizeof(typename Kernel::Proto::Shared));
    }
    // Waits for both, moves the counters on and checks what rank 1 received.
    void finish(std::uint32_t first, std::uint32_t steps, std::size_t count) {
        sender.timeout.synchronize(sender.stream, "sending");
        receiver.timeout.synchronize(receiver.stream, "receiving");
        all().step[0] += steps;
        all().step[1] += steps;
        for (std::uint32_t step = 0; step < steps; ++step) {
            for (std::size_t i = 0; i < count; ++i) {
                ASSERT_EQ(receiver.data.as<std::int32_t>()[step * kMost + i],
                          value_of(first + step, i))
                    << "wrong element " << i << " of step " << step;
            }
        }
    }

    Side sender{0};
    Side receiver{1};
    PinnedMemory memory{sizeof(Memory)};
};

// What fits into eight slots is sent at once; the ninth step waits until the first has been read.
TEST_F(SingleSteps, WaitForTheirCredit) {
    start<LL>(sender, 0, 20, 33, 8);
    std::this_thread::sleep_for(100ms);
    EXPECT_FALSE(sender.stream.finished());
    start<LL>(receiver, 0, 20, 33, 8);
    finish(0, 20, 33);
}

// Thread 0 of the receiver has its packets long before the last thread has.
TEST_F(SingleSteps, GiveASlotBackWhenAllThreadsHaveRead) {
    start<LL>(sender, 0, 40, 16, 8);
    start<LL, SlowBlock>(receiver, 0, 40, 16, 8);
    finish(0, 40, 16);
}

// Packets that short steps have never overwritten still hold the flags of 2^32 steps ago.
TEST_F(SingleSteps, StayRightWhenFlagsReturn) {
    for (const std::uint64_t turn : {std::uint64_t{1} << 31, std::uint64_t{1} << 32}) {
        begin_at(turn - kSteps);
        auto* stale = reinterpret_cast<simt::Pack16*>(all().slots);  // the slot of step `turn`
        const auto flag = static_cast<std::uint32_t>(turn + 1);
        for (std::size_t i = 0; i < kSlotBytes / sizeof(simt::Pack16); ++i) {
            write_packet(stale + i, 0xdeaddeaddeaddeadU, flag);
        }
        start<LL>(sender, 0, kSteps, 1, 8);
        start<LL>(receiver, 0, kSteps, 1, 8);
        finish(0, kSteps, 1);
        start<LL>(receiver, 100, 3, 200, 8);
        std::this_thread::sleep_for(50ms);  // the receiver looks before anything is sent
        start<LL>(sender, 100, 3, 200, 8);
        finish(100, 3, 200);
    }
}

TEST_F(SingleSteps, TakeLinesWhole) {
    for (std::uint32_t turn = 0; turn < 10; ++turn) {
        start<LL128>(receiver, turn * 50, 50, kMost - 5, 32);
        start<LL128>(sender, turn * 50, 50, kMost - 5, 32);
        finish(turn * 50, 50, kMost - 5);
    }
}

}  // namespace
}  // namespace symm
