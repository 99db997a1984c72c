// A rank of a ring does not call: what the others report.

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "labs/05_device_prims/ring/ll.hpp"
#include "labs/05_device_prims/ring/ring_kernel.hpp"
#include "labs/05_device_prims/ring/tests/steps_test.hpp"

namespace symm {
namespace {

using namespace testing;

constexpr int kRanks = 4;
constexpr std::size_t kCount = 100;

// Each names the rank before it. Rank 0, which has not called, is the one that reports nothing.
TEST(MissingRank, IsNamedByTheNextOneOnly) {
    using Kernel = RingKernel<LL<std::uint32_t, simt::ThreadBlock>>;
    const Device device(0);
    const PinnedMemory memory(kRanks * sizeof(Channel));
    auto* channels = memory.as<Channel>();
    std::vector<std::unique_ptr<Side>> sides;
    for (int rank = 0; rank < kRanks; ++rank) {
        sides.push_back(std::make_unique<Side>(rank, 2s));
    }
    for (int rank = 1; rank < kRanks; ++rank) {
        Side& side = *sides[rank];
        auto* data = side.data.as<std::uint32_t>();
        RingRequest request{.protocol = Protocol::kLL, .type = DataType::kUint32, .count = kCount};
        request.input = reinterpret_cast<CUdeviceptr>(data);
        request.output = reinterpret_cast<CUdeviceptr>(data + kCount);
        side.start(Kernel::of({request, rank, kRanks, 1, 8, channels[rank - 1].from_prev(),
                               channels[rank].to_next(), side.timeout.timeout()}),
                   8, sizeof(typename Kernel::Shared));
    }
    for (int rank = 1; rank < kRanks; ++rank) {
        const std::string error = sides[rank]->error();
        std::printf("%s\n", error.c_str());
        EXPECT_PRED_FORMAT2(::testing::IsSubstring,
                            "a packet from rank " + std::to_string(rank - 1), error);
    }
}

}  // namespace
}  // namespace symm
