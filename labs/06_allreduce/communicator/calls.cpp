// The path of a call, from its arguments to the launch.

#include <fmt/core.h>

#include <exception>
#include <stdexcept>

#include "common/sys/log.hpp"
#include "labs/06_allreduce/algorithms/kernels.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"

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

/// SYMM_CHECK=1: the ranks compare their calls before they make them. `call` is the text of call
/// `number`, or why this rank refuses it. Throws on each rank if a rank refuses its call, or if the
/// calls differ: the refusal, on all other ranks std::invalid_argument.
void compare_calls(Bootstrap& bootstrap, std::uint64_t number, std::string_view call,
                   const std::exception_ptr& refusal) {
    struct OneCall {
        std::uint64_t number;
        std::uint64_t refused;
    };
    const auto all = bootstrap.allgather("call", OneCall{number, refusal != nullptr});
    const auto texts = bootstrap.allgather_text("call", call);
    if (refusal) {
        std::rethrow_exception(refusal);
    }
    for (std::size_t p = 0; p < all.size(); ++p) {
        if (all[p].refused != 0) {
            throw std::invalid_argument(
                fmt::format("rank {} refuses its call {}: {}", p, all[p].number, texts[p]));
        }
    }
    for (std::size_t p = 1; p < all.size(); ++p) {
        if (all[p].number != all[0].number || texts[p] != texts[0]) {
            throw std::invalid_argument(fmt::format(
                "the ranks' calls differ: rank 0 makes call {}: {}; rank {} makes call {}: {}",
                all[0].number, texts[0], p, all[p].number, texts[p]));
        }
    }
}

/// Ranks may pass different operations and roots to a collective that has none.
Call without_unused(Call call) {
    if (static_cast<std::size_t>(call.collective) < kCollectiveRows.size()) {  // else refused later
        const CollectiveRow& row = row_of(call.collective);
        call.op = row.reduces() ? call.op : ReduceOp::kSum;  // of one element: that element
        call.root = row.has_root() ? call.root : 0;
    }
    return call;
}

}  // namespace

/// Where the buffers of a call are, those that the rank uses.
struct Communicator::Places {
    std::size_t in_part;  ///< Bytes from one rank's part to the next; 0 if there are none.
    std::size_t out_part;
    std::optional<WindowPlace> in;
    std::optional<WindowPlace> out;
};

/// A call that nothing on this rank refuses any more.
struct Communicator::Checked {
    Places places;
    bool in_windows;  ///< Those of the buffers that peers use.
    CallPlan plan;
};

Communicator::Places Communicator::places_of(const Call& call) const {
    const CollectiveRow& row = row_of(call.collective);
    const bool reads = row.reads(rank(), call.root);
    const bool writes = row.writes(rank(), call.root);
    const std::size_t size = size_of(call.type);
    const std::size_t in_parts = call.in_parts(ranks());
    const std::size_t out_parts = call.out_parts(ranks());
    if (call.count == 0) {
        return {};  // nothing is read or written, so any addresses will do
    }
    if (!is_addressable(call.in, call.count, in_parts * size) ||
        !is_addressable(call.out, call.count, out_parts * size)) {
        throw std::invalid_argument(
            fmt::format("{} x {} from {:#x} to {:#x} do not fit in any memory", call.count,
                        name_of(call.type), call.in, call.out));
    }
    if ((reads && call.in == 0) || (writes && call.out == 0)) {
        throw std::invalid_argument("input or output is a null pointer");
    }
    if ((reads && call.in % size != 0) || (writes && call.out % size != 0)) {
        throw std::invalid_argument(
            fmt::format("{} buffers must be aligned to {} bytes", name_of(call.type), size));
    }
    const std::size_t bytes = call.bytes();
    const std::size_t in_bytes = bytes * in_parts;
    const std::size_t out_bytes = bytes * out_parts;
    Places places{in_parts > 1 ? bytes : 0, out_parts > 1 ? bytes : 0, {}, {}};
    if (reads) {
        places.in = windows_.find(call.in, in_bytes);
    }
    if (writes) {
        places.out = windows_.find(call.out, out_bytes);
    }
    // Memory in a window has two addresses, the caller's own and the window's.
    const bool one_window = places.in && places.out && places.in->window == places.out->window;
    const Span from{one_window ? places.in->offset : call.in, in_bytes};
    const Span to{one_window ? places.out->offset : call.out, out_bytes};
    // In place, the smaller buffer is this rank's part of the larger one.
    const auto me = static_cast<std::size_t>(rank());
    const bool in_place = from.begin + places.in_part * me == to.begin + places.out_part * me;
    if (check_ && places.in && places.in->by_callers_address) {
        places.in->require_same_memory(call.in, in_bytes);
    }
    if (check_ && places.out && places.out->by_callers_address) {
        places.out->require_same_memory(call.out, out_bytes);
    }
    if (places.in && places.out && !one_window &&
        places.in->overlaps(in_bytes, *places.out, out_bytes)) {
        throw std::invalid_argument(
            "input and output overlap, through two windows of the same memory: use the addresses "
            "of one window");
    }
    if (reads && writes && !in_place && overlap(from, to)) {
        throw std::invalid_argument(
            row.has_parts()
                ? "input and output overlap: use two separate buffers, or this rank's part of the "
                  "larger buffer as the smaller one"
                : "input and output overlap: use one buffer or two separate ones");
    }
    return places;
}

QueuedCall Communicator::queued(const Call& call, const Checked& checked, CUstream stream) const {
    const auto& [places, in_windows, plan] = checked;
    const CollectiveRow& row = row_of(call.collective);
    const Call moved = row.reduces() ? call : call.as_integers();
    QueuedCall queued{{{Reduction(call.op, ranks(), is_signed_integer(moved.type)),
                        timeout_.timeout(), rank(), ranks()},
                       moved},
                      stream,
                      plan.shape,
                      launch_order(plan.shape.blocks),
                      plan.piece * size_of(call.type) / size_of(moved.type),
                      in_windows,
                      {}};
    for (int p = 0; p < ranks() && plan.row->needs.addresses; ++p) {
        // Where rank p reads in this rank's input, and writes in this rank's output.
        const auto seen = [&](const std::optional<WindowPlace>& place, bool is_used,
                              CUdeviceptr own, std::size_t part) {
            // Of the buffers that peers use, only a root's may lie in no window: they do without.
            if (!is_used || (!place && row.has_root() && p != rank())) {
                return kUnseen;
            }
            const CUdeviceptr begin = place ? place->seen_by(p, rank()) : own;
            return begin + part * static_cast<std::size_t>(p);
        };
        queued.seen[p] = {
            seen(places.in, row.reads(rank(), call.root), call.in, places.in_part),
            seen(places.out, row.writes(rank(), call.root), call.out, places.out_part)};
    }
    return queued;
}

Communicator::Checked Communicator::check(const Call& call, CUstream stream,
                                          Algorithm asked) const {
    require_known(call.collective, call.type, call.op, asked);
    const CollectiveRow& row = row_of(call.collective);
    if (row.has_root() && (call.root < 0 || call.root >= ranks())) {
        throw std::invalid_argument(fmt::format("root {} is none of {} ranks", call.root, ranks()));
    }
    const Places places = places_of(call);
    // Whether peers can reach the buffers that all ranks use. The root alone knows of its own.
    const bool reachable = call.count == 0 || ((places.in || row.from != Holders::kAll) &&
                                               (places.out || row.to != Holders::kAll));
    const CallPlan plan = tuner_.plan(call, reachable, asked);
    require_turn(stream);
    plan.row->kernels->require_turn(*workspace_, stream);
    return {places, reachable, plan};
}

void Communicator::admit(const std::function<std::string()>& check) {
    const std::uint64_t number = calls_.begin(rank_.bootstrap());
    std::string call;
    std::exception_ptr refusal;
    try {
        call = check();
    } catch (const std::exception& error) {
        refusal = std::current_exception();
        call = std::string_view(error.what()).substr(0, 4096);
    }
    if (check_) {
        compare_calls(rank_.bootstrap(), number, call, refusal);
    } else if (refusal) {
        calls_.refuse();
        std::rethrow_exception(refusal);
    }
}

Communicator::Checked Communicator::admit(const Call& call, CUstream stream, Algorithm asked,
                                          const std::function<void()>& also) {
    Checked checked{};
    admit([&] {
        checked = check(call, stream, asked);
        if (also) {
            also();
        }
        return check_ ? fmt::format(
                            "{} of {} x {}, {}, by {}, buffers {}{}", name_of(call.collective),
                            call.count, name_of(call.type), name_of(call.op), name_of(asked),
                            checked.in_windows ? "in windows" : "in no windows",
                            row_of(call.collective).has_root() ? fmt::format(", root {}", call.root)
                                                               : "")
                      : std::string();
    });
    return checked;
}

void Communicator::queue_in_turn(CUstream stream, const std::function<void()>& queue) {
    try {
        follow_last_call(stream);
        free_retired(stream);
        queue();
        remember_call(stream);
    } catch (const std::exception& error) {
        if (is_capture_lost(stream)) {
            throw;  // what is queued never runs: as if the graph had been destroyed
        }
        timeout_.abort();  // a part may be queued: the ranks cannot go on
        rank_.bootstrap().fail(error.what());
        throw;
    }
}

CallPlan Communicator::call(Call call, CUstream stream, Algorithm asked) {
    const CurrentContext current(rank_.gpu());
    call = without_unused(call);
    const Checked checked = admit(call, stream, asked);
    const CallPlan& plan = checked.plan;
    if (log::enabled(log::Level::kInfo)) {
        log::info("rank {}: {} of {} x {}, {}: {} with {} blocks of {} threads ({})", rank(),
                  name_of(call.collective), call.count, name_of(call.type), name_of(call.op),
                  name_of(plan.algorithm), plan.shape.blocks, plan.shape.threads,
                  describe(plan, ranks()));
    }
    if (call.count == 0) {
        return plan;
    }
    prepare(*plan.row);
    queue_in_turn(stream,
                  [&] { plan.row->kernels->queue(*workspace_, queued(call, checked, stream)); });
    return plan;
}

bool Communicator::may_wait(const Call& call, CUstream stream) const {
    const CurrentContext current(rank_.gpu());
    if (check_ || calls_.was_refused()) {
        return true;
    }
    try {
        const AlgorithmRow& row = *check(call, stream, Algorithm::kAuto).plan.row;
        return row.kernels->prepare != nullptr &&
               !prepared_.at(static_cast<std::size_t>(row.algorithm));
    } catch (const std::invalid_argument&) {
        return true;
    }
}

void Communicator::queue_own(std::string_view call, CUstream stream,
                             const std::function<void()>& check,
                             const std::function<void()>& queue) {
    const CurrentContext current(rank_.gpu());
    admit([&] {
        require_turn(stream);
        if (!check || !queue) {
            throw std::invalid_argument("a call of your own needs both functions, check and queue");
        }
        check();
        return std::string(call);
    });
    queue_in_turn(stream, queue);
}

void Communicator::require_possible(const Call& call, CUstream stream,
                                    const std::function<void()>& also) {
    const CurrentContext current(rank_.gpu());
    admit(call, stream, Algorithm::kAuto, also);
}

}  // namespace symm
