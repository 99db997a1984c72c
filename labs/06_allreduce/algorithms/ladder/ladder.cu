#include "labs/06_allreduce/algorithms/ladder/ladder.hpp"

#include <algorithm>
#include <array>

#include "common/cuda/copy.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"
#include "common/sys/refuse_unless.hpp"
#include "labs/06_allreduce/algorithms/ladder/2_barrier.hpp"
#include "labs/06_allreduce/algorithms/ladder/3_packets.hpp"
#include "labs/06_allreduce/algorithms/ladder/4_sentinel.hpp"
#include "labs/06_allreduce/algorithms/ladder/5_two_shots.hpp"
#include "labs/06_allreduce/algorithms/ladder/6_push.hpp"
#include "labs/06_allreduce/algorithms/ladder/fused.hpp"

namespace symm::ladder {
namespace {

/// A rank's memory before its slots and buffers.
struct alignas(128) Memory {
    BarrierMemory barrier;
    Epochs epochs;
};

std::size_t packs_of(std::size_t floats) {
    return (floats + Rung::kFloats - 1) / Rung::kFloats;
}

/// The fused call's: a float of each thread.
constexpr unsigned shared_bytes(unsigned threads) {
    return threads * static_cast<unsigned>(sizeof(float));
}

template <class... Kernels>
constexpr RungRow row(std::string_view name, std::string_view idea, unsigned char empty,
                      bool fused = false) {
    return {name,
            idea,
            empty,
            fused,
            [](CUstream stream, LaunchShape shape, const Rung& rung) {
                (launch(stream, shape.blocks, shape.threads, Kernels{rung},
                        shared_bytes(shape.threads)),
                 ...);
            },
            [](unsigned threads) {
                return std::min({resident_blocks<Kernels>(threads, shared_bytes(threads))...});
            }};
}

constexpr std::array<RungRow, kRungs> kRows{
    RungRow{"1 through the host", "CPUs add up", 0, false, nullptr, nullptr},
    row<WithBarrier>("2 barrier", "GPUs store into each other's memory", 0),
    row<ByPackets>("3 packets", "data carries its own flag: no barrier", 0),
    row<BySentinel>("4 sentinel", "data is its own flag: half the bytes", 0xff),
    row<InTwoShots>("5 two shots", "each element is added up once: the fewest bytes", 0),
    row<ByPush>("6 push", "both shots only store: no barrier, no loads", 0xff),
    row<BySentinel, AddResidual, Normalize>(
        "7 three launches", "then a residual is added, and rows are normalized", 0xff, true),
    row<BySentinel, AddAndNormalize>("8 two launches", "the residual's kernel also normalizes",
                                     0xff, true),
    row<InOneKernel>("9 one kernel", "a row is normalized as soon as it has arrived", 0xff, true),
};

}  // namespace

std::span<const RungRow, kRungs> rungs() {
    return kRows;
}

Ladder::Ladder(Rank& rank, const RungRow& row, std::size_t most)
    : row_(row),
      rank_(rank),
      most_(most),
      // A packet holds half a pack, and push sends twice; its last parts may be longer by a pack.
      per_sender_(static_cast<unsigned>(2 * packs_of(most) + 2)),
      in_(sizeof(Memory) +
          std::size_t{2} * static_cast<unsigned>(rank.size()) * per_sender_ * sizeof(Pack)),
      out_(in_ + packs_of(most) * sizeof(Pack)),
      range_(rank, out_ + packs_of(most) * sizeof(Pack)),
      residual_(packs_of(most) * sizeof(Pack)),
      most_shape_{is_emulated() ? 2U : kMaxBarrierBlocks, is_emulated() ? 32U : 512U} {
    refuse_unless(rank.size() <= kMaxBarrierRanks, "the ladder has at most {} ranks, not {}",
                  kMaxBarrierRanks, rank.size());
    if (row.queue == nullptr) {
        through_host_.emplace(rank, most * sizeof(float));
        return;
    }
    // Blocks wait for blocks of other ranks, so all must be resident at once.
    const unsigned mine = rank.bootstrap().together("the rung's memory", [&] {
        zero(range_.local(), out_);
        fill(range_.local() + sizeof(Memory), row.empty, in_ - sizeof(Memory));
        const unsigned blocks =
            row.resident(most_shape_.threads) / static_cast<unsigned>(rank.most_on_a_device());
        refuse_unless(blocks != 0, "device {} cannot keep a block of each rank resident",
                      rank.device());
        return blocks;
    });
    for (const unsigned blocks : rank.bootstrap().allgather("resident blocks", mine)) {
        most_shape_.blocks = std::min(most_shape_.blocks, blocks);
    }
}

Ladder::~Ladder() {
    rank_.tell_if_unwinding();
}

void Ladder::call(std::size_t count, const Stream& stream) {
    refuse_unless(0 < count && count <= most_, "{} floats: this rung takes 1 to {}", count, most_);
    if (through_host_) {
        stream.synchronize("the input");
        return (*through_host_)(buffers().in, buffers().out, count);
    }
    const LaunchShape shape{
        std::min(most_shape_.blocks,
                 static_cast<unsigned>(packs_of(count) / most_shape_.threads + 1)),
        most_shape_.threads};
    row_.queue(
        stream.get(), shape,
        {timeout_.timeout(),
         rank_.rank(),
         rank_.size(),
         range_.pointer<float>(in_),
         range_.pointer<float>(out_),
         reinterpret_cast<float*>(residual_.address()),
         count,
         {range_.pointer<BarrierMemory>(offsetof(Memory, barrier)), rank_.rank(), rank_.size()},
         &range_.at<Memory>(rank_.rank())->epochs,
         range_.pointer<Pack>(sizeof(Memory)),
         per_sender_});
}

void Ladder::synchronize(const Stream& stream, std::string_view what) {
    timeout_.synchronize(stream, what, [&] { rank_.bootstrap().throw_async_error(what); });
}

}  // namespace symm::ladder
