// Memory of all ranks behind one address: ranks that are threads, and ranks that are processes.

#include "labs/03_ipc/multicast_range.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/stream.hpp"
#include "common/simt/multimem.hpp"
#include "common/tests/needs.hpp"
#include "common/tests/run_as.hpp"
#include "labs/03_ipc/tests/segments.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class MulticastRangeIn : public ::testing::TestWithParam<RankMode> {
protected:
    void SetUp() override { SYMM_NEEDS(is_emulated()); }
};
INSTANTIATE_TEST_SUITE_P(Mode, MulticastRangeIn, ::testing::ValuesIn(kModes), name_of_mode);

constexpr int kRanks = 3;

struct Shared {
    std::uint32_t sum;
    alignas(16) simt::Pack16 of_rank[kRanks];
    simt::Pack16 input;
};

/// Adds to the sum of all ranks, and stores a pack into the memory of each.
struct StoreToAll {
    Shared* all;
    int rank;
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const auto number = static_cast<std::uint32_t>(rank + 1);
        simt::add_to_all(block, &all->sum, number);
        simt::store_to_all(block, &all->of_rank[rank], {{number, 10 * number}});
    }
};

/// `own->input` becomes the sum of all ranks'.
template <class T, simt::SwitchOp kOp>
struct LoadReduced {
    Shared* all;
    simt::Pack16* result;
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        *result = simt::load_reduce<T, kOp>(block, &all->input);
    }
};

template <class Kernel>
void run(const Kernel& kernel) {
    const Stream stream;
    launch(stream.get(), 1, 1, kernel);
    stream.synchronize();
}

TEST_P(MulticastRangeIn, StoresOnAllRanks) {
    run_as(GetParam(), kRanks, [](Rank& rank) {
        const CurrentContext current(rank.gpu());
        const MulticastRange range(rank, sizeof(Shared));
        run(StoreToAll{range.all<Shared>(), rank.rank()});
        rank.bootstrap().barrier("stored");
        Shared seen{};
        copy_to_host(&seen, reinterpret_cast<CUdeviceptr>(range.own<Shared>()), sizeof(seen));
        EXPECT_EQ(seen.sum, 6u);
        for (std::uint64_t p = 0; p < kRanks; ++p) {
            EXPECT_EQ(seen.of_rank[p].half[0], p + 1);
            EXPECT_EQ(seen.of_rank[p].half[1], 10 * (p + 1));
        }
        rank.bootstrap().barrier("seen");
    });
}

/// What each rank loads of elements that are `first` + rank, in each place of a pack.
template <class T, simt::SwitchOp kOp>
void expect_reduced(Rank& rank, const MulticastRange& range, T first, T expected) {
    constexpr std::size_t kCount = sizeof(simt::Pack16) / sizeof(T);
    std::vector<T> elements(kCount, static_cast<T>(first + static_cast<T>(rank.rank())));
    auto* const own = range.own<Shared>();
    copy_to_device(reinterpret_cast<CUdeviceptr>(&own->input), elements.data(),
                   sizeof(simt::Pack16));
    rank.bootstrap().barrier("filled");
    run(LoadReduced<T, kOp>{range.all<Shared>(), &own->of_rank[0]});
    copy_to_host(elements.data(), reinterpret_cast<CUdeviceptr>(&own->of_rank[0]),
                 sizeof(simt::Pack16));
    for (const T element : elements) {
        EXPECT_EQ(static_cast<double>(element), static_cast<double>(expected));
    }
    rank.bootstrap().barrier("loaded");
}

template <class T>
void expect_all(Rank& rank, const MulticastRange& range, T least) {
    const auto sum = static_cast<T>(least + least + least + T{3});
    expect_reduced<T, simt::SwitchOp::kAdd>(rank, range, least, sum);
    if constexpr (simt::can_switch<T>(simt::SwitchOp::kMin)) {
        expect_reduced<T, simt::SwitchOp::kMin>(rank, range, least, least);
        expect_reduced<T, simt::SwitchOp::kMax>(rank, range, least, static_cast<T>(least + T{2}));
    }
}

TEST_P(MulticastRangeIn, ReducesWhatTheInstructionsCan) {
    run_as(GetParam(), kRanks, [](Rank& rank) {
        const CurrentContext current(rank.gpu());
        const MulticastRange range(rank, sizeof(Shared));
        expect_all<float>(rank, range, 5);
        expect_all<double>(rank, range, -7);
        expect_all<std::uint32_t>(rank, range, 0x80000000);
        expect_all<std::int32_t>(rank, range, -1);
        expect_all<std::uint64_t>(rank, range, std::uint64_t{1} << 63);
        expect_all<std::int64_t>(rank, range, -1);
        expect_all<__half>(rank, range, __half(-1.0F));
        expect_all<__nv_bfloat16>(rank, range, __nv_bfloat16(-1.0F));
    });
}

TEST_P(MulticastRangeIn, NeedsADeviceForEachRank) {
    run_as(GetParam(), 5, [](Rank& rank) {  // of four devices
        EXPECT_THAT([&] { MulticastRange(rank, 1); },
                    ::testing::ThrowsMessage<std::runtime_error>(
                        HasSubstr("multicast needs a device for each rank")));
    });
}

}  // namespace
}  // namespace symm
