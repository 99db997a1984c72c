#include "labs/06_allreduce/algorithms/copy/copy.hpp"

#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/graph.hpp"

namespace symm {
namespace {

/// A rank's streams and events on its GPU, for CopyOrder.
struct CopyQueue {
    CUstream streams[3];  ///< By CopyStream.
    const std::vector<Event>& events;
    LaunchShape shape;
    DataType type;

    CUstream at(CopyStream stream) const { return streams[static_cast<int>(stream)]; }
    CUstream caller() const { return at(CopyStream::kCaller); }

    void record(CopyStream stream, int event) const {
        events.at(static_cast<std::size_t>(event)).record(at(stream));
    }
    void wait(CopyStream stream, int event) const {
        events.at(static_cast<std::size_t>(event)).make_wait(at(stream));
    }
    void copy(CopyStream stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) const {
        if (bytes != 0) {
            cu_check(cuMemcpyAsync(to, from, bytes, at(stream)), "cuMemcpyAsync(size={})", bytes);
        }
    }
    void reduce(const ReducePieceParams& piece) const {
        launch_reduce_piece(caller(), shape, type, piece);
    }
    void unpack(const Unpack& piece) const { launch_unpack(caller(), shape, piece); }
    void end(const EndOfRound& round) const { launch_end_of_round(caller(), round); }
};

}  // namespace

Copy::Copy(SymmetricPointer<CopyMemory> memory, const SlotMemory& slots)
    : memory_(memory), inputs_(slots.inputs()), sums_(slots.sums()), trust_(slots.trust()) {
    for (int i = 0; i < kCopyEvents; ++i) {
        events_.emplace_back(CU_EVENT_DISABLE_TIMING);
    }
}

void Copy::require_turn(CUstream stream) const {
    const bool captured = is_captured(input_stream_.get()) || is_captured(sum_stream_.get());
    if (captured && !is_captured(stream)) {
        throw std::invalid_argument(
            "an earlier copy-engine call is being captured, and all such calls share two streams "
            "for copies: end the capture first");
    }
}

void Copy::queue(CUstream stream, LaunchShape shape, const CopyCall& call) {
    CopyQueue queue{{stream, input_stream_.get(), sum_stream_.get()}, events_, shape, call.type};
    CopyOrder(queue, call, memory_, inputs_, sums_, trust_, Pieces::of(call.ranks)).run();
}

}  // namespace symm
