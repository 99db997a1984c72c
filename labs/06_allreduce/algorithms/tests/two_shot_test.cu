// Three ranks add up by two shots, and one or two of their buffers are not aligned to 16 bytes. All
// ranks must notice, and then use elements.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/cuda/copy.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"

namespace symm {

namespace {
constexpr int kRanks = 3;
constexpr int kMostRanks = 5;  // unlike any kernel of the library, whose reducers stay unchanged
using Word = std::uint32_t;
}  // namespace

/// Skips packs that are not aligned: a GPU refuses them, but a processor may not. And elements from
/// the begin of aligned buffers on that could be moved in packs.
template <class Pack>
class PackReducer<Word, Pack, kMostRanks, kMostRanks> {
public:
    const Pack* source[kMostRanks];
    Pack* target[kMostRanks];
    int sources;
    int targets;

    __host__ __device__ void operator()(const simt::ThreadBlock& block, std::size_t begin,
                                        std::size_t end, const Reduction& reduction) const {
        PackReducer<Word, Pack, kRanks, kRanks> reducer;
        std::uintptr_t bits = 0;
        for (int p = 0; p < kRanks; ++p) {
            reducer.source[p] = source[p];
            reducer.target[p] = target[p];
            bits |= reinterpret_cast<std::uintptr_t>(source[p]) |
                    reinterpret_cast<std::uintptr_t>(target[p]);
        }
        reducer.sources = reducer.targets = kRanks;
        const bool aligned = bits % sizeof(simt::Pack16) == 0;
        const bool could_be_packs = aligned && end * sizeof(Pack) >= sizeof(simt::Pack16);
        if (sizeof(Pack) == sizeof(simt::Pack16) ? aligned : !could_be_packs) {
            reducer(block, begin, end, reduction);
        }
    }
};

namespace {

constexpr std::size_t kCount = 45;  // the parts of elements and of packs begin at different places

struct Memory {
    RendezvousMemory rendezvous;
    BarrierMemory barrier;
    alignas(16) Word in[kCount + 3];
    alignas(16) Word out[kCount + 3];
};

/// The kernel, in a block whose shared memory is not fresh: on rank 2 an odd address follows the
/// buffers of all ranks.
struct InUsedMemory {
    TwoShot<Word, kMostRanks> kernel;
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        for (int p = kRanks; p < kMostRanks && block.thread_rank() == 0; ++p) {
            block.shared<Buffers>()[p] = {kernel.rank == 2 ? 1U : 0U, 0};
        }
        block.sync();
        kernel(block);
    }
};

/// How many bytes after a multiple of 16 each rank's input and output begin.
using Offsets = std::array<std::array<std::size_t, 2>, kRanks>;

void expect_sums(const std::string& unaligned, const Offsets& offsets) {
    run_ranks({kRanks, RankMode::kThread, {}}, [&](Rank& rank) {
        const SymmetricRange range(rank, sizeof(Memory));
        KernelTimeout timeout;
        const Stream stream;
        const auto me = static_cast<std::size_t>(rank.rank());
        std::array<Word, kCount> words{};
        for (std::size_t i = 0; i < kCount; ++i) {
            words.at(i) = static_cast<Word>(1000 * i + me);
        }
        const Buffers mine{
            range.peer(rank.rank()) + offsetof(Memory, in) + offsets.at(me)[0],
            range.peer(rank.rank()) + offsetof(Memory, out) + offsets.at(me)[1],
        };
        zero(range.peer(rank.rank()), sizeof(Memory));
        copy_to_device(mine.in, words.data(), sizeof(words));
        rank.bootstrap().barrier("ready");
        Rendezvous rendezvous{range.pointer<RendezvousMemory>(offsetof(Memory, rendezvous)),
                              rank.rank(),
                              kRanks,
                              {mine, mine, mine}};
        const BarrierView barrier{range.pointer<BarrierMemory>(offsetof(Memory, barrier)),
                                  rank.rank(), kRanks};
        const TwoShot<Word, kMostRanks> kernel{
            {{{Reduction(ReduceOp::kSum, kRanks), timeout.timeout(), rank.rank(), kRanks},
              {{}, mine.in, mine.out, kCount}},
             rendezvous,
             barrier}};
        launch(stream.get(), 2, 4, InUsedMemory{kernel}, TwoShot<Word, kMostRanks>::kSharedBytes);
        timeout.synchronize(stream, "the AllReduce");
        copy_to_host(words.data(), mine.out, sizeof(words));
        for (std::size_t i = 0; i < kCount; ++i) {
            ASSERT_EQ(words.at(i), 3000 * i + 3)
                << "element " << i << " on rank " << me << ", unaligned: " << unaligned;
        }
        rank.bootstrap().barrier("done");
    });
}

TEST(TwoShot, TakesBuffersOfAnyAlignment) {
    expect_sums("none", {});
    expect_sums("two buffers", {{{8, 0}, {0, 8}, {0, 0}}});
    for (const std::size_t rank : {0, 1, 2}) {
        for (const std::size_t which : {0, 1}) {
            Offsets offsets{};
            offsets.at(rank).at(which) = 4;
            expect_sums(fmt::format("{} of rank {}", which == 0 ? "input" : "output", rank),
                        offsets);
        }
    }
}

}  // namespace
}  // namespace symm
