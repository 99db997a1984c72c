// ReduceScatter and AllGather: their bits, their windows, and calls that are refused.
// all_reduce_test.cpp compares them with the reference.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/device_memory.hpp"
#include "labs/06_allreduce/algorithms/copy/copy.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

constexpr std::array kHalves{Collective::kReduceScatter, Collective::kAllGather};

std::size_t part_bytes(const Side& side, std::size_t count, DataType type) {
    return count * size_of(type) * static_cast<std::size_t>(side.rank.size());
}

// Sums that depend on the order of the ranks: both algorithms must give an AllReduce's bits.
TEST(ReduceScatter, HasTheBitsOfAnAllReduce) {
    on_ranks(5, [](Side& side) {
        constexpr std::size_t kCount = 1003;
        const auto ranks = static_cast<std::size_t>(side.rank.size());
        const auto r = static_cast<std::size_t>(side.rank.rank());
        std::vector<float> values(ranks * kCount);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto drawn = static_cast<float>((i * 7919 + r * 104729) % 65521 + 1);
            values[i] = (i + r) % 3 == 0 ? drawn * 1e7F : (i + r) % 3 == 1 ? drawn : -drawn * 1e-5F;
        }
        const CUdeviceptr in = side.allocate(part_bytes(side, kCount, DataType::kFloat));
        const CUdeviceptr out = side.allocate(part_bytes(side, kCount, DataType::kFloat));
        copy_to_device(in, values.data(), values.size() * sizeof(float));
        const auto result = [&](Collective collective, Algorithm way) {
            const bool scatters = collective == Collective::kReduceScatter;
            side.call(in, out, scatters ? kCount : ranks * kCount,
                      {DataType::kFloat, ReduceOp::kSum, collective}, way);
            side.communicator.synchronize(side.stream, "the call");
            std::vector<std::uint32_t> bits(kCount);
            const std::size_t own = scatters ? 0 : r * kCount * sizeof(float);
            copy_to_host(bits.data(), out + own, kCount * sizeof(float));
            return bits;
        };
        const auto expected = result(Collective::kAllReduce, Algorithm::kOneShot);
        for (const Algorithm way :
             algorithms_of(side.rank.size(), {.collective = Collective::kReduceScatter})) {
            EXPECT_EQ(result(Collective::kReduceScatter, way), expected);
        }
    });
}

// Parts that are larger than a slot, from memory in no window.
TEST(HalvesByCopies, AreRightInRounds) {
    SYMM_NEEDS(has_copy(3));
    on_ranks(3, [](Side& side) {
        const std::size_t count = peer_slot_bytes(3) / sizeof(float) * 9 / 4 + 1;
        const DeviceMemory in(part_bytes(side, count, DataType::kFloat));
        const DeviceMemory out(part_bytes(side, count, DataType::kFloat));
        for (const Collective half : kHalves) {
            side.reduce_and_check(in.address(), out.address(), count, {.collective = half},
                                  Algorithm::kCopy);
        }
    });
}

// Every bit arrives, even those of signalling NaNs.
TEST(AllGather, ChangesNoBit) {
    on_ranks(2, [](Side& side) {
        constexpr std::size_t kCount = 1 << 16;
        const CUdeviceptr in = side.allocate(2 * kCount);
        const CUdeviceptr out = side.allocate(4 * kCount);
        std::vector<std::uint16_t> all(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
            all[i] = static_cast<std::uint16_t>(i);
        }
        copy_to_device(in, all.data(), 2 * kCount);
        for (const Algorithm way :
             algorithms_of(side.rank.size(), {.collective = Collective::kAllGather})) {
            Verifier::poison(side.stream, out, 4 * kCount);
            side.communicator.all_gather(in, out, kCount, DataType::kHalf, side.stream.get(), way);
            side.communicator.synchronize(side.stream, "the AllGather");
            for (const std::size_t rank : {0, 1}) {
                std::vector<std::uint16_t> got(kCount);
                copy_to_host(got.data(), out + rank * 2 * kCount, 2 * kCount);
                EXPECT_EQ(got, all);
            }
        }
    });
}

// Calls from memory outside windows that exceed scratch memory take several launches.
TEST(Halves, TakeMemoryInNoWindow) {
    on_ranks(3, [](Side& side) {
        constexpr std::size_t kMost = (3 << 20) / 2;  // bytes of a part
        const DeviceMemory in(3 * kMost);
        const DeviceMemory out(3 * kMost);
        for (const Collective half : kHalves) {
            for (const auto& [bytes, algorithm] : {std::pair{kMost, Algorithm::kChunks},
                                                   {kOneShotLimit + 4 * 77, Algorithm::kChunks},
                                                   {kOneShotLimit + 4 * 77, Algorithm::kOneShot}}) {
                const CallPlan plan =
                    side.reduce_and_check(in.address(), out.address(), bytes / sizeof(float),
                                          {.collective = half}, algorithm);
                if (is_emulated() || algorithm == Algorithm::kOneShot) {  // slots are small
                    EXPECT_LT(plan.piece, bytes / sizeof(float));
                }
            }
        }
    });
}

// Only its own rank uses the smaller buffer, so it may be anywhere.
TEST(Halves, NeedAWindowForTheLargerBufferOnly) {
    on_ranks(3, [](Side& side) {
        constexpr std::size_t kCount = 1000;
        const CUdeviceptr window = side.allocate(3 * kCount * sizeof(float));
        const DeviceMemory other(3 * kCount * sizeof(float));
        const Arithmetic scatter{.collective = Collective::kReduceScatter};
        const Arithmetic gather{.collective = Collective::kAllGather};
        constexpr Algorithm kWay = Algorithm::kTwoShot;
        side.reduce_and_check(window, other.address(), kCount, scatter, kWay);
        side.reduce_and_check(other.address(), window, kCount, gather, kWay);
        EXPECT_THROW(side.call(other.address(), window, kCount, scatter, kWay),
                     std::invalid_argument);
    });
}

// In place at the start of the larger buffer: right only for rank 0.
TEST(Halves, RefuseAPlaceThatIsAnotherRanks) {
    for (const Collective half : kHalves) {
        on_ranks(2, [&](Side& side) {
            const CUdeviceptr window = side.allocate(4096);
            const CUdeviceptr out = side.rank.rank() == 1 ? window : window + 40;
            EXPECT_THROW(side.call(window, out, 100, {.collective = half}), std::invalid_argument);
        });
    }
}

}  // namespace
}  // namespace symm
