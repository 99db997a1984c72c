#include "labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "common/cuda/check.hpp"
#include "common/cuda/graph.hpp"
#include "labs/06_allreduce/algorithms/launches.hpp"

namespace symm {
namespace {

constexpr std::size_t kPack = sizeof(simt::Pack16);

void copy(CUstream stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    if (bytes != 0) {
        cu_check(cuMemcpyAsync(to, from, bytes, stream), "cuMemcpyAsync(size={})", bytes);
    }
}

void wait_for(const Event& event, CUstream stream) {
    cu_check(cuStreamWaitEvent(stream, event.get(), 0), "cuStreamWaitEvent()");
}

/// Makes `later` wait for what `earlier` has queued so far.
void order(CUstream earlier, CUstream later, const Event& event) {
    event.record(earlier);
    wait_for(event, later);
}

CUdeviceptr address_of(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

/// Where piece k of `bytes` begins. The first has two thirds, so that few sums remain for
/// the last: their transfer overlaps no copy.
std::size_t piece_begin(std::size_t bytes, std::size_t k) {
    return k == 0 ? 0 : k == 1 ? bytes / 3 * 2 / kPack * kPack : bytes;
}

}  // namespace

TwoShotCopy::TwoShotCopy(Rank& rank, SymmetricPointer<CopyMemory> memory, SymmetricRange scratch)
    : rank_(rank), memory_{memory, rank.rank(), rank.size()}, scratch_(std::move(scratch)) {}

std::size_t TwoShotCopy::slot_bytes() const {
    const auto peers = static_cast<std::size_t>(std::max(rank_.size() - 1, 1));
    return scratch_.size() / peers / kPack * kPack;
}

CUdeviceptr TwoShotCopy::slot(int receiver, int sender) const {
    const auto before = static_cast<std::size_t>(sender - (sender > receiver ? 1 : 0));
    return scratch_.peer(receiver) + before * slot_bytes();
}

void TwoShotCopy::require_turn(CUstream stream) const {
    if (is_captured(copies_.get()) && !is_captured(stream)) {
        throw std::invalid_argument(
            "an earlier copy-engine call is being captured, and all such calls share one stream "
            "for copies: end the capture first");
    }
}

void TwoShotCopy::queue(CUstream stream, LaunchShape shape, DataType type,
                        const TwoShotCall& call) {
    const std::size_t bytes = call.count * size_of(type);
    // The last part may be longer than the others, by less than a pack.
    const std::size_t most = (slot_bytes() - kPack) * static_cast<std::size_t>(rank_.size());
    launch_meet(stream, {call.rendezvous, memory_, call.timeout});
    for (std::size_t begin = 0; begin < bytes; begin += most) {
        queue_round(stream, shape, type, call, begin, std::min(most, bytes - begin));
        launch_end_of_round(stream, {call.barrier, memory_, call.timeout});
    }
}

void TwoShotCopy::queue_round(CUstream stream, LaunchShape shape, DataType type,
                              const TwoShotCall& call, std::size_t begin, std::size_t bytes) {
    const int r = rank_.rank();
    const int ranks = rank_.size();
    const auto n = static_cast<std::size_t>(ranks);
    const CUdeviceptr in = call.rendezvous.mine[r].in;
    CUstream copies = copies_.get();
    // Where piece k of part p begins in a buffer. Parts consist of whole packs, except for the end
    // of the last one. None is larger than a slot.
    const auto part = [&](int p) {
        return p == ranks ? bytes : bytes / kPack * static_cast<std::size_t>(p) / n * kPack;
    };
    const auto piece = [&](int p, std::size_t k) {
        return begin + part(p) + piece_begin(part(p + 1) - part(p), k);
    };
    const auto length = [&](int p, std::size_t k) { return piece(p, k + 1) - piece(p, k); };

    order(stream, copies, met_);
    for (std::size_t k = 0; k < CopyMemory::kPieces; ++k) {
        for (int step = 1; step < ranks; ++step) {
            const int p = (r + step) % ranks;
            copy(copies, slot(p, r) + piece(p, k) - piece(p, 0), in + piece(p, k), length(p, k));
            copy(copies, address_of(&memory_.peer(p)->flag[k][r]),
                 address_of(&memory_.local()->round), sizeof(std::uint32_t));
        }
        pushed_[k].record(copies);
    }
    for (std::size_t k = 0; k < CopyMemory::kPieces; ++k) {
        wait_for(pushed_[k], stream);
        launch_reduce_piece(stream, shape, type,
                            {in + piece(r, k), piece(r, k), length(r, k) / size_of(type),
                             slot(r, 0) + piece(r, k) - piece(r, 0), slot_bytes(), memory_.local(),
                             k, call.reduction, call.timeout, r, ranks});
    }
}

}  // namespace symm
