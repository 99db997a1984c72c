// The kernels of both collectives alone, for the course: without a communicator.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "symm/collectives/all_reduce_rms_norm_kernel.hpp"
#include "symm/collectives/all_to_all_kernel.hpp"
#include "symm/collectives/long_rows_kernel.hpp"

namespace symm::collectives {
namespace {

constexpr int kRanks = 3;
constexpr unsigned kSlots = 1280;
constexpr std::size_t kMost = 13;  ///< Elements of a part.
constexpr unsigned kElement = 3;   ///< Bytes: the last packet is not full.
constexpr unsigned kRows = 5;
constexpr unsigned kThreads = 128;  ///< Four warps: three sums or more round by their order.
constexpr unsigned kHidden = 8 * kThreads;  ///< Two packs for each thread.
constexpr unsigned kPartsOfRow = kHidden / 4 / symm::simt::kWarpSize;
constexpr unsigned kMostParts = kRows * kPartsOfRow + 1;
constexpr float kEpsilon = 0.25F;

struct Memory {
    symm::Epochs epochs;
    symm::Packet squares[kMostParts];
    alignas(16) symm::simt::Pack16 slots[2][kRanks - 1][kSlots];
    unsigned char in[kRanks][kMost * kElement];
    unsigned char out[kRanks][kMost * kElement];
    std::uint32_t counts[kRanks];
    std::uint32_t received[kRanks];
    alignas(16) float x[kRows][kHidden];
    alignas(16) float residual[kRows][kHidden];
    alignas(16) float rows_out[kRows][kHidden];
    alignas(16) float weight[kHidden];
};

/// A rank and its memory.
struct Side {
    Side(symm::Rank& of, unsigned char slots) : rank(of), range(of, sizeof(Memory)) {
        symm::zero(local(), sizeof(Memory));
        symm::fill(local() + offsetof(Memory, slots), slots, sizeof(Memory::slots));
    }
    CUdeviceptr local() const { return range.peer(rank.rank()); }
    template <class T>
    void put(std::size_t offset, const T& values) {
        symm::copy_to_device(local() + offset, &values, sizeof(values));
    }
    Memory contents() {
        timeout.synchronize(stream, "the call");
        Memory all{};  // without the slots, into which peers store
        constexpr std::size_t kBegin = offsetof(Memory, in);
        symm::copy_to_host(all.in, local() + kBegin, sizeof(all) - kBegin);
        return all;
    }
    symm::MailboxParams call(std::size_t in, std::size_t out, std::size_t count) {
        return {{symm::Reduction(symm::ReduceOp::kSum, rank.size()), timeout.timeout(), rank.rank(),
                 rank.size()},
                {&range.at<Memory>(rank.rank())->epochs,
                 range.pointer<symm::simt::Pack16>(offsetof(Memory, slots)), kSlots},
                {{}, local() + in, local() + out, count}};
    }

    symm::Rank& rank;
    symm::SymmetricRange range;
    symm::KernelTimeout timeout;
    symm::Stream stream;
};

unsigned char byte(int from, int to, unsigned call, std::size_t i) {
    return static_cast<unsigned char>(1 + 90 * from + 17 * to + 5 * call + i);
}
std::uint32_t count_of(int from, int to, unsigned call) {
    return static_cast<std::uint32_t>((7 * from + 4 * to + 5 * call) % (kMost + 3));
}

TEST(AllToAll, BringsTheElementsThatEachRankHas) {
    symm::run_ranks({kRanks, symm::RankMode::kThread, {}}, [](symm::Rank& rank) {
        Side side(rank, 0);
        for (unsigned call = 0; call < 6; ++call) {
            Memory before{};
            for (int p = 0; p < kRanks; ++p) {
                before.counts[p] = count_of(rank.rank(), p, call);
                for (std::size_t i = 0; i < kMost * kElement; ++i) {
                    before.in[p][i] = byte(rank.rank(), p, call, i);
                    before.out[p][i] = 0xee;
                }
            }
            side.put(offsetof(Memory, in), before.in);
            side.put(offsetof(Memory, out), before.out);
            side.put(offsetof(Memory, counts), before.counts);
            rank.bootstrap().barrier("inputs are there");
            AllToAllParams parameters{side.call(offsetof(Memory, in), offsetof(Memory, out), kMost),
                                      kElement, side.range.at<Memory>(rank.rank())->counts,
                                      side.range.at<Memory>(rank.rank())->received};
            parameters.stride = kMost * kElement;
            const unsigned threads = 2 + call % 2;  // with 3, all packets have threads of their own
            symm::launch(side.stream.get(), 2, threads, AllToAllPackets<kRanks>{parameters});
            const Memory after = side.contents();
            for (int p = 0; p < kRanks; ++p) {
                const std::uint32_t sent = count_of(p, rank.rank(), call);
                EXPECT_EQ(after.received[p], sent);
                for (std::size_t i = 0; i < kMost * kElement; ++i) {
                    ASSERT_EQ(int{after.out[p][i]},
                              i < sent * kElement ? int{byte(p, rank.rank(), call, i)} : 0xee)
                        << "byte " << i << " of " << sent << " elements from rank " << p;
                }
            }
        }
        rank.bootstrap().barrier("done");
    });
}

/// The memory after a call on these inputs: by RmsNormPacks, or by RmsNormParts without `threads`.
Memory normalize(symm::Rank& rank, Side& side, const Memory& before, unsigned threads = kThreads) {
    side.put(offsetof(Memory, x), before.x);
    side.put(offsetof(Memory, residual), before.residual);
    side.put(offsetof(Memory, weight), before.weight);
    symm::fill(side.local() + offsetof(Memory, rows_out), 0xff, sizeof(Memory::rows_out));
    rank.bootstrap().barrier("inputs are there");
    const RmsNormParams call{
        side.call(offsetof(Memory, x), offsetof(Memory, rows_out), std::size_t{kRows} * kHidden),
        side.local() + offsetof(Memory, residual),
        side.local() + offsetof(Memory, weight),
        kRows,
        kHidden,
        kEpsilon};
    if (threads > 0) {
        symm::launch(side.stream.get(), 2, threads, RmsNormPacks<float, 2>{{call}},
                     RowNorm<float>::shared_bytes(kHidden));
    } else {
        auto* const squares = side.range.at<Memory>(rank.rank())->squares;
        symm::launch(side.stream.get(), 2, kThreads,
                     RmsNormParts<float, 2>{{{call}}, squares, kMostParts, kPartsOfRow}, 0);
    }
    return side.contents();
}

TEST(RowNorm, NormalizesEachRow) {
    symm::run_ranks({2, symm::RankMode::kThread, {}}, [](symm::Rank& rank) {
        Side side(rank, 0xff);
        for (unsigned call = 0; call < 3; ++call) {
            Memory before{};
            for (unsigned i = 0; i < kRows * kHidden; ++i) {
                before.x[i / kHidden][i % kHidden] =
                    static_cast<float>(i % 37 + 3 * static_cast<unsigned>(rank.rank()) + call);
                before.residual[i / kHidden][i % kHidden] = static_cast<float>(i % 11 + i / 200);
                before.weight[i % kHidden] = static_cast<float>(1 + i % 3);
            }
            const Memory after = normalize(rank, side, before);
            for (unsigned row = 0; row < kRows; ++row) {
                double squares = 0;
                for (unsigned i = 0; i < kHidden; ++i) {
                    const unsigned at = row * kHidden + i;
                    const auto sum =
                        static_cast<float>(2 * (at % 37 + call) + 3) + before.residual[row][i];
                    ASSERT_EQ(after.residual[row][i], sum) << "row " << row << ", element " << i;
                    squares += static_cast<double>(sum) * sum;
                }
                const double rms = std::sqrt(squares / kHidden + kEpsilon);
                for (unsigned i = 0; i < kHidden; ++i) {
                    ASSERT_NEAR(after.rows_out[row][i],
                                after.residual[row][i] / rms * before.weight[i], 1e-4)
                        << "row " << row << ", element " << i;
                }
            }
        }
        rank.bootstrap().barrier("done");
    });
}

/// Rows whose sum of squares is another in each order: one part's is 2^24, the others' are 1. After
/// 2^24 each 1 is rounded off, before it none is. All other elements are so small that no part's
/// sum shows them. They and the weights are powers of two, so the outputs are exactly the numbers
/// by which the threads have scaled.
Memory uneven_rows() {
    constexpr unsigned kOfPart = 4 * symm::simt::kWarpSize;
    Memory rows{};
    std::fill_n(rows.weight, kHidden, 1.0F);
    for (unsigned row = 0; row < kRows; ++row) {
        const unsigned large = row % kPartsOfRow;
        for (unsigned i = 0; i < kHidden; ++i) {
            const float value = i % kOfPart != 1 ? 0x1p-20F : i / kOfPart == large ? 0x1p12F : 1.0F;
            rows.x[row][i] = value / 2;  // in both ranks
        }
    }
    return rows;
}

TEST(RowNorm, ScalesARowByOneNumber) {
    symm::run_ranks({2, symm::RankMode::kThread, {}}, [](symm::Rank& rank) {
        Side side(rank, 0xff);
        const Memory after = normalize(rank, side, uneven_rows());
        for (unsigned row = 0; row < kRows; ++row) {
            for (unsigned i = 0; i < kHidden; ++i) {
                const auto scale = [&](unsigned at) {
                    return after.rows_out[row][at] / after.residual[row][at];
                };
                ASSERT_EQ(scale(i), scale(0))
                    << "the threads of row " << row << " scale by different numbers: element " << i
                    << " and element 0";
            }
        }
        rank.bootstrap().barrier("done");
    });
}

TEST(RowNorm, HasTheSameBitsInEachBlockAndByParts) {
    symm::run_ranks({2, symm::RankMode::kThread, {}}, [](symm::Rank& rank) {
        Side side(rank, 0xff);
        const Memory before = uneven_rows();
        const Memory first = normalize(rank, side, before);
        for (const unsigned threads : {0U, 32U, 96U, 256U}) {
            rank.bootstrap().barrier("results are read");
            const Memory other = normalize(rank, side, before, threads);
            for (unsigned i = 0; i < kRows * kHidden; ++i) {
                const unsigned row = i / kHidden;
                ASSERT_EQ(other.rows_out[row][i % kHidden], first.rows_out[row][i % kHidden])
                    << "row " << row << " has other bits "
                    << (threads == 0 ? "by parts" : "in a block of " + std::to_string(threads))
                    << " than in one of " << kThreads << ": element " << i % kHidden;
            }
        }
        rank.bootstrap().barrier("done");
    });
}

}  // namespace
}  // namespace symm::collectives
