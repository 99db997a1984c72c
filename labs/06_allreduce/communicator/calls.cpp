// The path of a call, from its arguments to the launch.

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <stdexcept>

#include "common/sys/log.hpp"
#include "labs/06_allreduce/algorithms/launches.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"
#include "labs/06_allreduce/communicator/call_comparison.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "labs/06_allreduce/communicator/memory.hpp"

namespace symm {
namespace {

/// Bytes that begin at an address.
struct Span {
    CUdeviceptr begin;
    std::size_t bytes;
};

bool overlap(const Span& a, const Span& b) {
    return a.begin < b.begin ? b.begin - a.begin < a.bytes : a.begin - b.begin < b.bytes;
}

/// The integer type as which an AllGather by typed kernels moves elements: no operation changes it.
DataType moved_as(DataType type) {
    return size_of(type) == 8   ? DataType::kUint64
           : size_of(type) == 4 ? DataType::kUint32
                                : DataType::kUint8;
}

}  // namespace

/// Where the buffers of a call are.
struct Communicator::Places {
    std::size_t part;  ///< A rank's part in bytes. 0 for an AllReduce, which uses whole buffers.
    std::optional<WindowPlace> in;
    std::optional<WindowPlace> out;
};

/// A call that nothing on this rank refuses any more.
struct Communicator::Checked {
    Places places;
    CallSize size;
    CallPlan plan;
};

Communicator::Places Communicator::places_of(const CollectiveCall& call) const {
    const auto [collective, in, out, count, type, op] = call;
    const auto parts = static_cast<std::size_t>(ranks());
    if (count > std::numeric_limits<std::size_t>::max() / size_of(type) / parts) {
        throw std::invalid_argument(fmt::format("{} elements do not fit in any memory", count));
    }
    if (count == 0) {
        return {};  // nothing is read or written, so any addresses will do
    }
    if (in == 0 || out == 0) {
        throw std::invalid_argument("input or output is a null pointer");
    }
    if (in % size_of(type) != 0 || out % size_of(type) != 0) {
        throw std::invalid_argument(
            fmt::format("{} buffers must be aligned to {} bytes", name_of(type), size_of(type)));
    }
    const std::size_t bytes = count * size_of(type);
    const std::size_t in_bytes = bytes * (collective == Collective::kReduceScatter ? parts : 1);
    const std::size_t out_bytes = bytes * (collective == Collective::kAllGather ? parts : 1);
    const Places places{collective == Collective::kAllReduce ? 0 : bytes,
                        windows_.find(in, in_bytes), windows_.find(out, out_bytes)};
    // Memory in a window has two addresses, the caller's own and the window's.
    const bool one_window = places.in && places.out && places.in->window == places.out->window;
    const Span from{one_window ? places.in->offset : in, in_bytes};
    const Span to{one_window ? places.out->offset : out, out_bytes};
    // In place, the smaller buffer is this rank's part of the larger one.
    const std::size_t own = places.part * static_cast<std::size_t>(rank());
    const bool in_place =
        from.begin + (in_bytes > bytes ? own : 0) == to.begin + (out_bytes > bytes ? own : 0);
    if (check_ && places.in && places.in->by_callers_address) {
        places.in->require_same_memory(in, in_bytes);
    }
    if (check_ && places.out && places.out->by_callers_address) {
        places.out->require_same_memory(out, out_bytes);
    }
    if (places.in && places.out && !one_window &&
        places.in->overlaps(in_bytes, *places.out, out_bytes)) {
        throw std::invalid_argument(
            "input and output overlap, through two windows of the same memory: use the addresses "
            "of one window");
    }
    if (!in_place && overlap(from, to)) {
        throw std::invalid_argument(
            collective == Collective::kAllReduce
                ? "input and output overlap: use one buffer or two separate ones"
                : "input and output overlap: use two separate buffers, or this rank's part of the "
                  "larger buffer as the smaller one");
    }
    return places;
}

TwoShotCall Communicator::two_shot_call(const CollectiveCall& call, const Places& places) const {
    const bool gathers = call.collective == Collective::kAllGather;
    TwoShotCall two_shots{{memory().member(&CommunicatorMemory::rendezvous), rank(), ranks(), {}},
                          {memory().member(&CommunicatorMemory::barrier), rank(), ranks()},
                          gathers ? places.part / size_of(moved_as(call.type)) : call.count,
                          Reduction(call.op, ranks(), is_signed_integer(call.type)),
                          timeout_.timeout(),
                          gathers                                         ? Shots::kAllGather
                          : call.collective == Collective::kReduceScatter ? Shots::kReduceScatter
                                                                          : Shots::kBoth};
    for (int p = 0; p < ranks(); ++p) {
        // Where rank p reads in this rank's input, and writes in this rank's output.
        const std::size_t part = places.part * static_cast<std::size_t>(p);
        const auto seen = [&](const std::optional<WindowPlace>& place, CUdeviceptr own) {
            return place ? place->seen_by(p, rank()) : own;  // no peer uses `own`
        };
        two_shots.rendezvous.mine[p] = {seen(places.in, call.in) + (gathers ? 0 : part),
                                        seen(places.out, call.out) + (gathers ? part : 0)};
    }
    return two_shots;
}

Communicator::Checked Communicator::check(const CollectiveCall& call, CUstream stream,
                                          Algorithm asked) const {
    require_known(call.collective, call.type, call.op, asked);
    if (call.collective > Collective::kAllGather) {
        throw std::invalid_argument(
            fmt::format("a communicator does not support {}", name_of(call.collective)));
    }
    const Places places = places_of(call);
    // Whether peers can reach the buffers that they use.
    const bool reachable =
        call.count == 0 || ((places.in || call.collective == Collective::kAllGather) &&
                            (places.out || call.collective == Collective::kReduceScatter));
    const CallSize size{call.type, call.count, ranks(), reachable, call.collective};
    const CallPlan plan = plan_call(size, asked, tuner_);
    if ((stream == nullptr || stream == CU_STREAM_LEGACY) && rank_.most_on_a_device() > 1) {
        throw std::invalid_argument(
            "ranks that are threads and share a device share its default stream, so their kernels "
            "would wait for each other for ever: use a stream for each rank");
    }
    require_turn(stream);
    if (plan.algorithm == Algorithm::kCopy && copy_ != nullptr) {
        copy_->require_turn(stream);
    }
    return {places, size, plan};
}

Communicator::Checked Communicator::admit(const CollectiveCall& call, CUstream stream,
                                          Algorithm asked, const std::function<void()>& also) {
    const std::uint64_t number = calls_.begin(rank_.bootstrap());
    Checked checked{};
    std::exception_ptr refusal;
    try {
        checked = check(call, stream, asked);
        if (also) {
            also();
        }
    } catch (const std::exception&) {
        refusal = std::current_exception();
    }
    if (check_) {
        compare_calls(rank_.bootstrap(), number, checked.size, call.op, asked, refusal);
    } else if (refusal) {
        calls_.refuse();
        std::rethrow_exception(refusal);
    }
    return checked;
}

CallPlan Communicator::queue(const CollectiveCall& call, CUstream stream, Algorithm asked) {
    const Checked checked = admit(call, stream, asked);
    const CallPlan& chosen = checked.plan;
    if (log::enabled(log::Level::kInfo)) {
        log::info("rank {}: {} of {} x {}, {}: {} with {} blocks of {} threads ({})", rank(),
                  name_of(call.collective), call.count, name_of(call.type), name_of(call.op),
                  name_of(chosen.algorithm), chosen.shape.blocks, chosen.shape.threads,
                  describe(chosen, ranks()));
    }
    if (call.count == 0) {
        return chosen;
    }
    if (chosen.algorithm >= Algorithm::kChunks) {
        prepare_copy();
    }
    try {
        follow_last_call(stream);
        launch(call, checked.places, stream, chosen);
        remember_call(stream);
    } catch (const std::exception& error) {  // a part may be queued: the ranks cannot go on
        timeout_.abort();
        rank_.bootstrap().fail(error.what());
        throw;
    }
    return chosen;
}

void Communicator::launch(const CollectiveCall& call, const Places& places, CUstream stream,
                          const CallPlan& chosen) {
    if (chosen.algorithm == Algorithm::kTwoShot) {
        const bool gathers = call.collective == Collective::kAllGather;
        launch_two_shot(stream, chosen.shape, gathers ? moved_as(call.type) : call.type,
                        two_shot_call(call, places));
    } else if (chosen.algorithm == Algorithm::kChunks) {
        queue_chunks(two_shot_call(call, places), call.type, stream, chosen);
    } else if (chosen.algorithm == Algorithm::kCopy) {
        copy_->queue(stream, chosen.shape,
                     {call.collective,
                      call.in,
                      call.out,
                      call.count,
                      call.type,
                      Reduction(call.op, ranks(), is_signed_integer(call.type)),
                      {memory().member(&CommunicatorMemory::barrier), rank(), ranks()},
                      timeout_.timeout()});
    } else {
        queue_pieces(call, stream, chosen);
    }
}

void Communicator::queue_chunks(const TwoShotCall& call, DataType type, CUstream stream,
                                const CallPlan& chosen) {
    ChunksCall piece{call, memory().member(&CommunicatorMemory::chunks), copy_->trust(),
                     copy_->slots(), chunk_packs(ranks())};
    for (std::size_t done = 0; done < call.count; done += chosen.piece) {
        piece.count = std::min(chosen.piece, call.count - done);
        for (int p = 0; p < ranks(); ++p) {
            piece.rendezvous.mine[p] = {call.rendezvous.mine[p].in + done * size_of(type),
                                        call.rendezvous.mine[p].out + done * size_of(type)};
        }
        launch_two_shot_chunks(stream, chosen.shape, type, piece);
    }
}

void Communicator::queue_pieces(const CollectiveCall& call, CUstream stream,
                                const CallPlan& chosen) {
    const ScratchPlace place = scratch_place(chosen.algorithm, ranks());
    const bool gathers = call.collective == Collective::kAllGather;
    // An AllGather moves bytes.
    const std::size_t unit = gathers ? size_of(call.type) : 1;
    for (std::size_t done = 0; done < call.count; done += chosen.piece) {
        if (done != 0) {  // a call of many pieces stops once it can no longer succeed
            rank_.bootstrap().throw_async_error("the next piece");
            timeout_.throw_if_gave_up();
        }
        const ScratchCall piece{call.in + done * size_of(call.type),
                                call.out + done * size_of(call.type),
                                std::min(chosen.piece, call.count - done) * unit,
                                Reduction(call.op, ranks(), is_signed_integer(call.type)),
                                &(memory().of(rank())->*place.epochs),
                                memory_.pointer<simt::Pack16>(place.offset),
                                place.per_sender,
                                timeout_.timeout(),
                                rank(),
                                ranks(),
                                call.count * unit};
        if (gathers) {
            launch_all_gather_packets(stream, chosen.shape, piece);
        } else if (call.collective == Collective::kReduceScatter) {
            launch_reduce_scatter_packets(stream, chosen.shape, call.type, piece);
        } else if (chosen.algorithm == Algorithm::kOneShot) {
            launch_one_shot(stream, chosen.shape, call.type, piece);
        } else if (chosen.algorithm == Algorithm::kSentinel) {
            launch_sentinel(stream, chosen.shape, call.type, piece);
        } else {
            launch_two_shot_push(stream, chosen.shape, call.type, piece);
        }
    }
}

CallPlan Communicator::call(Collective collective, CUdeviceptr in, CUdeviceptr out,
                            std::size_t count, DataType type, ReduceOp op, CUstream stream,
                            Algorithm asked) {
    const CurrentContext current(rank_.gpu());
    // An AllGather only moves elements: a sum of one element is that element.
    const ReduceOp applied = collective == Collective::kAllGather ? ReduceOp::kSum : op;
    return queue({collective, in, out, count, type, applied}, stream, asked);
}

void Communicator::require_possible(Collective collective, CUdeviceptr in, CUdeviceptr out,
                                    std::size_t count, DataType type, ReduceOp op, CUstream stream,
                                    const std::function<void()>& also) {
    const CurrentContext current(rank_.gpu());
    admit({collective, in, out, count, type, op}, stream, Algorithm::kAuto, also);
}

}  // namespace symm
