#pragma once
/// \file
/// The order of a call by the copy engine: README.md's table as code that only queues. Copy queues
/// in streams, and the explorer's scenes run all orders that streams and events allow.

#include <algorithm>
#include <array>

#include "labs/06_allreduce/algorithms/copy/copy_kernels.hpp"

namespace symm {

/// A rank's streams.
enum class CopyStream { kCaller, kInputs, kSums };

/// The events by which they wait for each other. kSummed has one for each piece.
enum CopyEvent { kBegun, kPushed, kSent, kSummed };
inline constexpr int kCopyEvents = kSummed + CopyMemory::kMostPieces;

/// A part of a rank's buffer.
struct BufferPart {
    CUdeviceptr address;
    std::size_t bytes;
};

/// The pieces of a part. Few, since each copy begins some 4 us after the previous one; and the last
/// is small, since no copy runs while its inputs are added up and its sums are unpacked. With one
/// peer these two take longer, so there are three pieces.
struct Pieces {
    int count;  ///< 1 to 3.

    static Pieces of(int ranks) { return {ranks <= 2 ? 3 : 2}; }
    /// Where piece k of `bytes` begins: at a whole pack. Piece `count` begins at the end.
    std::size_t begin(std::size_t bytes, int k) const {
        const std::size_t tenths = k == 0 ? 0 : count == 2 ? 8 : k == 1 ? 6 : 9;
        constexpr std::size_t kPack = sizeof(simt::Pack16);
        return k == count ? bytes : bytes / 10 * tenths / kPack * kPack;
    }
    BufferPart of_part(const BufferPart& part, int k) const {
        const std::size_t first = begin(part.bytes, k);
        return {part.address + first, begin(part.bytes, k + 1) - first};
    }
};

/// A call: an AllReduce, a ReduceScatter or an AllGather.
struct CopyCall : KernelParams {
    BarrierView barrier;
};

/// A rank's side of calls. `Queue` has a function for each thing that can be queued:
///
/// | function                     | queues                                                       |
/// |------------------------------|--------------------------------------------------------------|
/// | record(stream, event)        | the event: it has come when all earlier work of the stream has ended |
/// | wait(stream, event)          | a wait of the stream's later work, for the event as recorded last |
/// | copy(stream, to, from, bytes)| a copy                                                       |
/// | reduce(params), unpack(unpack), end(end) | a kernel, in the caller's stream                 |
template <class Queue>
class CopyOrder {
public:
    CopyOrder(Queue& queue, const CopyCall& call, SymmetricPointer<CopyMemory> memory,
              const PeerSlots& inputs, const PeerSlots& sums, const Trust& trust, Pieces pieces)
        : queue_(queue),
          call_(call),
          memory_(memory),
          inputs_(inputs),
          sums_(sums),
          trust_(trust),
          pieces_(pieces) {}

    /// Queues the call, in rounds if it is too large for the slots.
    void run() {
        const std::size_t slot = inputs_.packs * kPack;
        // The last part of an AllReduce may be longer than the others, by less than a pack.
        const std::size_t most = call_.collective == Collective::kAllReduce
                                     ? (slot - kPack) * static_cast<std::size_t>(call_.ranks)
                                     : slot;
        for (std::size_t first = 0; first < call_.bytes(); first += most) {
            round(first, std::min(most, call_.bytes() - first));
        }
    }

private:
    static constexpr std::size_t kPack = sizeof(simt::Pack16);
    using Parts = std::array<BufferPart, kMaxBarrierRanks>;

    void order(CopyStream earlier, int event, CopyStream later) {
        queue_.record(earlier, event);
        queue_.wait(later, event);
    }

    /// `first`: how many bytes of the call, or of each of its parts, earlier rounds have done.
    void round(std::size_t first, std::size_t bytes) {
        using enum CopyStream;
        const int rank = call_.rank;
        const int ranks = call_.ranks;
        const bool reduces = call_.collective != Collective::kAllGather;
        const bool gathers = call_.collective != Collective::kReduceScatter;
        const Parts in = parts_of(call_.in, reduces, first, bytes);
        const Parts out = parts_of(call_.out, gathers, first, bytes);
        const BufferPart& own_in = in.at(static_cast<std::size_t>(rank));
        const BufferPart& own_out = out.at(static_cast<std::size_t>(rank));
        order(kCaller, kBegun, reduces ? kInputs : kSums);
        for (int k = 0; k < pieces_.count && reduces; ++k) {
            for (int step = 1; step < ranks; ++step) {
                const int to = (rank + step) % ranks;
                send(kInputs, inputs_, k, to, in.at(static_cast<std::size_t>(to)));
            }
            order(kInputs, kPushed, kCaller);
            reduce(k, own_in, own_out);
            queue_.record(kCaller, kSummed + k);
        }
        if (!reduces && own_in.address != own_out.address) {
            queue_.copy(kCaller, own_out.address, own_in.address, bytes);
        }
        for (int k = 0; k < pieces_.count && gathers; ++k) {
            if (reduces) {
                queue_.wait(kSums, kSummed + k);
            }
            for (int step = 1; step < ranks; ++step) {
                const int to = (rank + step) % ranks;
                const int from = (rank + ranks - step) % ranks;
                send(kSums, sums_, k, to, reduces ? own_out : own_in);
                order(kSums, kSent, kCaller);
                unpack(k, to, from, out.at(static_cast<std::size_t>(from)));
            }
        }
        queue_.end(EndOfRound{call_.barrier, memory_, trust_, call_.timeout});
    }

    /// This round's part for each rank in a buffer. An AllReduce's parts consist of whole packs,
    /// except for the end of the last. Else, a buffer has all ranks' parts or only this rank's.
    Parts parts_of(CUdeviceptr buffer, bool has_all, std::size_t first, std::size_t bytes) const {
        const auto n = static_cast<std::size_t>(call_.ranks);
        Parts parts{};
        for (std::size_t p = 0; p < n; ++p) {
            if (call_.collective == Collective::kAllReduce) {
                const auto begin = [&](std::size_t q) {
                    return q == n ? bytes : bytes / kPack * q / n * kPack;
                };
                parts.at(p) = {buffer + first + begin(p), begin(p + 1) - begin(p)};
            } else {
                parts.at(p) = {buffer + first + (has_all ? p * call_.bytes() : 0), bytes};
            }
        }
        return parts;
    }

    /// Where piece k of `part` of rank `sender` lies in the slots of rank `receiver`.
    CUdeviceptr place(const PeerSlots& slots, int receiver, int sender, const BufferPart& part,
                      int k) const {
        return reinterpret_cast<CUdeviceptr>(slots.of(receiver, sender)) +
               pieces_.begin(part.bytes, k);
    }
    /// Copies piece k of the part to rank `to`.
    void send(CopyStream stream, const PeerSlots& slots, int k, int to, const BufferPart& part) {
        const BufferPart piece = pieces_.of_part(part, k);
        queue_.copy(stream, place(slots, to, call_.rank, part, k), piece.address, piece.bytes);
    }
    void reduce(int k, const BufferPart& in, const BufferPart& out) {
        const BufferPart sums = pieces_.of_part(out, k);
        queue_.reduce(ReducePieceParams{
            pieces_.of_part(in, k).address, sums.address, sums.bytes / size_of(call_.type),
            place(inputs_, call_.rank, call_.rank == 0 ? 1 : 0, out, k), inputs_.packs * kPack,
            memory_, k, call_.reduction, call_.timeout, call_.rank, call_.ranks});
    }
    void unpack(int k, int to, int from, const BufferPart& part) {
        const BufferPart piece = pieces_.of_part(part, k);
        queue_.unpack(Unpack{piece.address, place(sums_, call_.rank, from, part, k), piece.bytes,
                             memory_, k, to, from, call_.timeout, call_.rank});
    }

    Queue& queue_;
    const CopyCall& call_;
    const SymmetricPointer<CopyMemory> memory_;
    const PeerSlots inputs_, sums_;
    const Trust trust_;
    const Pieces pieces_;
};

}  // namespace symm
