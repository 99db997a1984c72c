#include "labs/06_allreduce/algorithms/copy/copy.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/graph.hpp"

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

}  // namespace

Copy::Copy(SymmetricPointer<CopyMemory> memory, const SlotMemory& slots)
    : memory_(memory), trust_(slots.trust()), inputs_{slots.inputs()}, sums_{slots.sums()} {}

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
        launch_end_of_round(stream, {call.barrier, memory_, trust_, call.timeout});
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

    begun_.record(stream);
    wait_for(begun_, reduces ? inputs_.stream.get() : sums_.stream.get());
    for (int k = 0; k < pieces.count && reduces; ++k) {
        for (int step = 1; step < ranks; ++step) {
            const int p = (rank + step) % ranks;
            send(inputs_, k, p, in.at(static_cast<std::size_t>(p)));
        }
        order(inputs_.stream.get(), stream, inputs_.arrived);
        const BufferPart sums = pieces.of_part(own_out, k);
        launch_reduce_piece(
            stream, shape, call.type,
            {pieces.of_part(own_in, k).address, sums.address, sums.bytes / size_of(call.type),
             address_of(inputs_.slots.of(rank, rank == 0 ? 1 : 0)) + pieces.begin(own_out.bytes, k),
             inputs_.slots.packs * kPack, memory_, k, call.reduction, call.timeout, rank, ranks});
        summed_.at(static_cast<std::size_t>(k)).record(stream);
    }
    if (!reduces && own_in.address != own_out.address) {
        copy(stream, own_out.address, own_in.address, bytes);
    }
    for (int k = 0; k < pieces.count && gathers; ++k) {
        if (reduces) {
            wait_for(summed_.at(static_cast<std::size_t>(k)), sums_.stream.get());
        }
        for (int step = 1; step < ranks; ++step) {
            const int to = (rank + step) % ranks;
            const int from = (rank + ranks - step) % ranks;
            send(sums_, k, to, reduces ? own_out : own_in);
            order(sums_.stream.get(), stream, sums_.arrived);
            const BufferPart& part = out.at(static_cast<std::size_t>(from));
            const BufferPart piece = pieces.of_part(part, k);
            launch_unpack(stream, shape,
                          {piece.address,
                           address_of(sums_.slots.of(rank, from)) + pieces.begin(part.bytes, k),
                           piece.bytes, memory_, k, to, from, call.timeout, rank});
        }
    }
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
