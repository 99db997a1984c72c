// Stores into the next rank's output: only where that rank is ready.

#include <cstring>

#include "labs/05_device_prims/ring/ring_kernel.hpp"
#include "labs/05_device_prims/ring/simple.hpp"
#include "labs/05_device_prims/ring/tests/steps_test.hpp"

namespace symm {
namespace {

using namespace testing;

constexpr int kRanks = 2;
constexpr std::size_t kCount = 300;

class DirectSends : public TwoSides {
protected:
    DirectSends() : TwoSides(3s), sides{&sender, &receiver} {}

    template <class T>
    T* input(int rank) const {
        return sides[rank]->data.template as<T>();
    }
    template <class T>
    T* output(int rank) const {
        return input<T>(rank) + kCount;
    }

    template <class T>
    void start(int rank, Collective collective) {
        using Kernel = RingKernel<Simple<T, simt::ThreadBlock>>;
        const int next = 1 - rank;
        RingRequest request{.collective = collective, .count = kCount};
        request.input = reinterpret_cast<CUdeviceptr>(input<T>(rank));
        request.output = reinterpret_cast<CUdeviceptr>(output<T>(rank));
        request.next_output = reinterpret_cast<CUdeviceptr>(output<T>(next));
        sides[rank]->start(Kernel::of({request, rank, kRanks, 1, 8, channel(next).from_prev(),
                                       channel(rank).to_next(), sides[rank]->timeout.timeout()}),
                           8, sizeof(typename Kernel::Shared));
    }

    // Rank 1 writes to its output until its call begins, when rank 0 has long begun.
    template <class T>
    void run(Collective collective) {
        for (int rank = 0; rank < kRanks; ++rank) {
            for (std::size_t i = 0; i < kCount; ++i) {
                input<T>(rank)[i] = value<T>(rank, i);
            }
        }
        start<T>(0, collective);
        std::this_thread::sleep_for(50ms);
        std::memset(output<T>(1), 0xa5, kRanks * kCount * sizeof(T));
        start<T>(1, collective);
        sender.wait("rank 0");
        receiver.wait("rank 1");
    }

    template <class T>
    static T value(int rank, std::size_t i) {
        return static_cast<T>(i * 3 + static_cast<std::size_t>(rank) * 50 + 1);
    }

    Side* sides[kRanks];
};

TEST_F(DirectSends, OfAnAllReduceWaitForALateRank) {
    run<std::int32_t>(Collective::kAllReduce);
    for (int rank = 0; rank < kRanks; ++rank) {
        for (std::size_t i = 0; i < kCount; ++i) {
            ASSERT_EQ(output<std::int32_t>(rank)[i],
                      value<std::int32_t>(0, i) + value<std::int32_t>(1, i))
                << "wrong element " << i << " of rank " << rank;
        }
    }
}

// The first step of an AllGather sends data to which the next rank has not contributed.
TEST_F(DirectSends, AreNotMadeByAnAllGather) {
    run<std::uint8_t>(Collective::kAllGather);
    for (int rank = 0; rank < kRanks; ++rank) {
        for (std::size_t i = 0; i < kRanks * kCount; ++i) {
            ASSERT_EQ(output<std::uint8_t>(rank)[i],
                      value<std::uint8_t>(static_cast<int>(i / kCount), i % kCount))
                << "wrong element " << i << " of rank " << rank;
        }
    }
}

}  // namespace
}  // namespace symm
