#include "labs/06_allreduce/algorithms/copy/copy.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/graph.hpp"
#include "labs/06_allreduce/algorithms/copy/copy_order.hpp"

namespace symm {
namespace {

constexpr std::size_t kPack = sizeof(simt::Pack16);

void copy(CUstream stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    if (bytes != 0) {
        cu_check(cuMemcpyAsync(to, from, bytes, stream), "cuMemcpyAsync(size={})", bytes);
    }
}

CUdeviceptr address_of(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

}  // namespace

Copy::Copy(SymmetricPointer<CopyMemory> memory, const SlotMemory& slots)
    : memory_(memory), trust_(slots.trust()), inputs_{slots.inputs()}, sums_{slots.sums()} {
    for (int i = 0; i < kSummed + CopyMemory::kMostPieces; ++i) {
        events_.emplace_back(CU_EVENT_DISABLE_TIMING);
    }
}

void Copy::require_turn(CUstream stream) const {
    const bool captured = is_captured(inputs_.stream.get()) || is_captured(sums_.stream.get());
    if (captured && !is_captured(stream)) {
        throw std::invalid_argument(
            "an earlier copy-engine call is being captured, and all such calls share two streams "
            "for copies: end the capture first");
    }
}

void Copy::queue(CUstream stream, LaunchShape shape, const CopyCall& call) {
    const std::size_t bytes = call.bytes();
    const std::size_t slot = inputs_.slots.packs * kPack;
    // The last part of an AllReduce may be longer than the others, by less than a pack.
    const std::size_t most = call.collective == Collective::kAllReduce
                                 ? (slot - kPack) * static_cast<std::size_t>(call.ranks)
                                 : slot;
    for (std::size_t first = 0; first < bytes; first += most) {
        queue_round(stream, shape, call, first, std::min(most, bytes - first));
    }
}

void Copy::queue_round(CUstream stream, LaunchShape shape, const CopyCall& call, std::size_t first,
                       std::size_t bytes) {
    const int rank = call.rank;
    const int ranks = call.ranks;
    const bool reduces = call.collective != Collective::kAllGather;
    const bool gathers = call.collective != Collective::kReduceScatter;
    const Parts in = parts_of(call, call.in, reduces, first, bytes);
    const Parts out = parts_of(call, call.out, gathers, first, bytes);
    const BufferPart& own_in = in.at(static_cast<std::size_t>(rank));
    const BufferPart& own_out = out.at(static_cast<std::size_t>(rank));
    const Pieces pieces = Pieces::of(ranks);
    const auto reduce = [&](int k) {
        const BufferPart sums = pieces.of_part(own_out, k);
        launch_reduce_piece(
            stream, shape, call.type,
            {pieces.of_part(own_in, k).address, sums.address, sums.bytes / size_of(call.type),
             address_of(inputs_.slots.of(rank, rank == 0 ? 1 : 0)) + pieces.begin(own_out.bytes, k),
             inputs_.slots.packs * kPack, memory_, k, call.reduction, call.timeout, rank, ranks});
    };
    const auto unpack = [&](int k, int to, int from) {
        const BufferPart& part = out.at(static_cast<std::size_t>(from));
        const BufferPart piece = pieces.of_part(part, k);
        launch_unpack(
            stream, shape,
            {piece.address, address_of(sums_.slots.of(rank, from)) + pieces.begin(part.bytes, k),
             piece.bytes, memory_, k, to, from, call.timeout, rank});
    };
    for_copy_steps(call.collective, rank, ranks, pieces.count, [&](const CopyStep& step) {
        const Event& event = events_.at(static_cast<std::size_t>(step.event));
        const CUstream on = step.stream == CopyStream::kCaller   ? stream
                            : step.stream == CopyStream::kInputs ? inputs_.stream.get()
                                                                 : sums_.stream.get();
        switch (step.what) {
            case CopyStep::What::kRecord:
                return event.record(on);
            case CopyStep::What::kWait:
                return event.make_wait(on);
            case CopyStep::What::kPush:
                return send(inputs_, step.piece, step.to, in.at(static_cast<std::size_t>(step.to)));
            case CopyStep::What::kReduce:
                return reduce(step.piece);
            case CopyStep::What::kKeep:
                return own_in.address == own_out.address
                           ? void()
                           : copy(stream, own_out.address, own_in.address, bytes);
            case CopyStep::What::kSend:
                return send(sums_, step.piece, step.to, reduces ? own_out : own_in);
            case CopyStep::What::kUnpack:
                return unpack(step.piece, step.to, step.from);
            case CopyStep::What::kEnd:
                return launch_end_of_round(stream, {call.barrier, memory_, trust_, call.timeout});
        }
    });
}

Copy::Parts Copy::parts_of(const CopyCall& call, CUdeviceptr buffer, bool has_all,
                           std::size_t first, std::size_t bytes) const {
    const auto n = static_cast<std::size_t>(call.ranks);
    Parts parts{};
    for (std::size_t p = 0; p < n; ++p) {
        if (call.collective == Collective::kAllReduce) {
            const auto begin = [&](std::size_t q) {
                return q == n ? bytes : bytes / kPack * q / n * kPack;
            };
            parts.at(p) = {buffer + first + begin(p), begin(p + 1) - begin(p)};
        } else {
            const std::size_t whole = call.bytes();
            parts.at(p) = {buffer + first + (has_all ? p * whole : 0), bytes};
        }
    }
    return parts;
}

void Copy::send(const Trip& trip, int k, int to, const BufferPart& part) const {
    const Pieces pieces = Pieces::of(trust_.ranks);
    const BufferPart piece = pieces.of_part(part, k);
    copy(trip.stream.get(),
         address_of(trip.slots.of(to, trust_.rank)) + pieces.begin(part.bytes, k), piece.address,
         piece.bytes);
}

}  // namespace symm
