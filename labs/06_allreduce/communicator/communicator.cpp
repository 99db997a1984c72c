#include "labs/06_allreduce/communicator/communicator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <exception>
#include <limits>
#include <stdexcept>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/driver.hpp"
#include "common/environment/environment.hpp"
#include "common/log/log.hpp"
#include "common/sys/named.hpp"

namespace symm {
namespace {

/// What each rank keeps, in symmetric memory. The banks of packets, of the sentinel and of push are
/// behind. Each begins a line of the cache: with banks in the middle of one, 4M took 16.1 us
/// instead of 15.0 on two H200s.
struct State {
    alignas(128) BarrierMemory barrier;
    alignas(128) RendezvousMemory rendezvous;
    alignas(128) CopyMemory copy;
    alignas(128) OneShotMemory one_shot;
    alignas(128) OneShotMemory sentinel;
    alignas(128) OneShotMemory push;
    alignas(128) simt::Pack16 banks[1];
};

static_assert(kMaxAllReduceRanks <= kMaxBarrierRanks);

/// A packet carries eight bytes of payload.
constexpr std::size_t kPacketsPerBank = kOneShotLimit / 8;
static_assert(std::has_single_bit(kPacketsPerBank));

int ranks_that_may_meet(const Rank& rank) {
    const int most = is_emulated() ? kMaxAllReduceRanks : kMaxRanksOnGpus;
    if (rank.size() > most) {
        throw std::invalid_argument(
            fmt::format("an AllReduce has 1 to {} ranks, not {}", most, rank.size()));
    }
    return rank.size();
}

/// Where the banks of the sentinel begin, behind those of packets.
std::size_t sentinel_banks(int ranks) {
    return offsetof(State, banks) +
           2 * static_cast<std::size_t>(ranks) * kPacketsPerBank * sizeof(simt::Pack16);
}

/// Where the banks of push begin, behind those of the sentinel.
std::size_t push_banks(int ranks) {
    return sentinel_banks(ranks) + 2 * static_cast<std::size_t>(ranks - 1) * sentinel_limit(ranks);
}

/// What one sender has in a region of a bank of push: whole lines of the cache.
unsigned push_packs_per_part(int ranks) {
    const auto packs = static_cast<unsigned>(push_limit(ranks) / sizeof(simt::Pack16));
    return (packs_per_part(packs, ranks) + 7) / 8 * 8;
}

/// What is different for the algorithms that go through scratch memory.
struct Scratch {
    std::size_t memory;      ///< Where its OneShotMemory is, in each rank's State,
    std::size_t banks;       ///< and its banks.
    std::size_t per_sender;  ///< Packets or packs of one sender in one bank.
    decltype(&launch_one_shot) launch;
};

Scratch scratch_of(Algorithm algorithm, int ranks) {
    switch (algorithm) {
        case Algorithm::kOneShot:
            return {offsetof(State, one_shot), offsetof(State, banks), kPacketsPerBank,
                    &launch_one_shot};
        case Algorithm::kPush:
            return {offsetof(State, push), push_banks(ranks), push_packs_per_part(ranks),
                    &launch_two_shot_push};
        default:
            return {offsetof(State, sentinel), sentinel_banks(ranks),
                    sentinel_limit(ranks) / sizeof(simt::Pack16), &launch_sentinel};
    }
}

/// How many blocks of `threads` threads the device keeps resident.
struct Resident {
    unsigned any = std::numeric_limits<unsigned>::max();  ///< Of any algorithm's largest kernel.
    unsigned sentinel = any;  ///< Of the largest kernel with the sentinel.
};

Resident resident_blocks(int ranks, unsigned threads) {
    Resident resident;
    for (const DataType type : kDataTypes) {
        if (is_floating(type)) {
            resident.sentinel =
                std::min({resident.sentinel, sentinel_resident_blocks(type, ranks, threads),
                          two_shot_push_resident_blocks(type, ranks, threads)});
        }
        resident.any = std::min({resident.any, one_shot_resident_blocks(type, ranks, threads),
                                 two_shot_resident_blocks(type, ranks, threads)});
    }
    resident.any = std::min(resident.any, resident.sentinel);
    return resident;
}

std::chrono::nanoseconds limit_of(const CommunicatorOptions& options) {
    if (options.limit && options.limit->count() <= 0) {
        throw std::invalid_argument("CommunicatorOptions::limit has to be more than 0");
    }
    return options.limit ? std::min<std::chrono::nanoseconds>(*options.limit, Deadline::kLongest)
           : env::is_set("SYMM_TIMEOUT") ? Deadline::standard_limit()
                                         : Deadline::kLongest;
}

/// Rank 0's table, for all ranks.
TuningTable common_table(Rank& rank) {
    TuningTable table;
    rank.bootstrap().together("tuning table", [&] { table = TuningTable::from_environment(); });
    return TuningTable::parse(rank.bootstrap().allgather_text("tuning table", table.text())[0],
                              "rank 0's table");
}

bool is_captured(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cu_check(cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing()");
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

constexpr std::array<std::string_view, 2> kWindowKinds{"plain", "symmetric"};

bool overlap(CUdeviceptr a, CUdeviceptr b, std::size_t bytes) {
    return a != b && (a < b ? b - a : a - b) < bytes;
}

}  // namespace

Communicator::Communicator(Rank& rank, const CommunicatorOptions& options)
    : rank_(rank),
      state_(rank, state_bytes(ranks_that_may_meet(rank))),
      timeout_(limit_of(options)),
      tuner_{common_table(rank), {}, TunerOverrides::from_environment()} {
    LaunchShape most{.blocks = is_emulated() ? 2U : kMaxBarrierBlocks,
                     .threads = is_emulated() ? 32U : kMostThreads};
    const Resident resident = resident_blocks(rank.size(), most.threads);
    most.blocks =
        std::min(most.blocks, resident.any / static_cast<unsigned>(rank.most_on_a_device()));
    const unsigned max_blocks = options.max_blocks != 0
                                    ? options.max_blocks
                                    : static_cast<unsigned>(env::number("SYMM_MAX_BLOCKS"));
    if (max_blocks != 0) {
        most.blocks = std::min(most.blocks, max_blocks);
    }
    // Streams share a few hardware queues. With the copies of several ranks on one device, one
    // rank's kernel could stand in front of what it waits for.
    MostShapes& shapes = tuner_.most;
    shapes = {most, most, is_emulated() || rank.most_on_a_device() == 1};
    // Of the sentinel's smaller kernels more blocks fit than of the largest one. But they spread
    // over all multiprocessors, so a communicator that launches them has the device to itself.
    const bool alone = !is_emulated() && max_blocks == 0 && rank.most_on_a_device() == 1;
    if (alone) {
        shapes.sentinel.blocks = std::min(kMaxBlocks, resident.sentinel);
    }
    // In two shots block b of each rank waits for block b of every other, so all ranks launch as
    // many blocks as the rank that can launch the fewest. With packs that is only simpler.
    for (const MostShapes& other : rank.bootstrap().allgather("launch shapes", shapes)) {
        shapes.any.blocks = std::min(shapes.any.blocks, other.any.blocks);
        shapes.sentinel.blocks = std::min(shapes.sentinel.blocks, other.sentinel.blocks);
    }
    rank_.bootstrap().together("resident blocks", [&] {
        if (shapes.any.blocks == 0) {
            throw std::invalid_argument(
                fmt::format("device {} keeps {} blocks of {} threads resident at once, not one per "
                            "rank of this "
                            "process: use fewer ranks, or --mode process",
                            rank.device(), resident.any, most.threads));
        }
        share_.emplace(rank.device(), alone ? resident.any : shapes.any.blocks, resident.any);
        const std::size_t zeros = sentinel_banks(rank.size());
        zero(state_.local(), zeros);
        fill(state_.local() + zeros, 0xff, state_.size() - zeros);  // the sentinel
    });
}

Communicator::~Communicator() {
    rank_.tell_if_unwinding();
    if (std::uncaught_exceptions() > 0) {
        timeout_.abort();
    }
    end_calls();
}

void Communicator::end_calls() noexcept {
    // Not all streams of calls need be there any more. So the whole context is waited for, which
    // takes no deadline: another thread looks at the time, and at the other ranks.
    const auto watch = [&](const std::stop_token& ended) {
        const Deadline deadline = Deadline::standard();
        while (!ended.stop_requested()) {
            if (deadline.passed() || rank_.bootstrap().async_error("calls in flight")) {
                timeout_.abort();
                return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
    };
    try {
        const std::jthread watching(watch);
        cuCtxSynchronize();            // an error is not this destructor's to report
    } catch (const std::exception&) {  // no thread could be started
        timeout_.abort();
        cuCtxSynchronize();
    }
}

std::size_t Communicator::state_bytes(int ranks) {
    if (ranks < 1 || ranks > kMaxAllReduceRanks) {
        throw std::invalid_argument(
            fmt::format("an AllReduce has 1 to {} ranks, not {}", kMaxAllReduceRanks, ranks));
    }
    return push_banks(ranks) + std::size_t{4} * static_cast<unsigned>(ranks - 1) *
                                   push_packs_per_part(ranks) * sizeof(simt::Pack16);
}

void Communicator::prepare_copy() {
    if (!copy_) {
        copy_.emplace(rank_, &state_.at<State>(0)->copy, state_.stride());
    }
}

CUdeviceptr Communicator::add_window(SymmetricRange range, WindowKind kind,
                                     CUdeviceptr registered) {
    require_named(kWindowKinds, "WindowKind", kind);
    struct Described {
        CUdeviceptr base;
        WindowKind kind;
    };
    std::vector<CUdeviceptr> bases;
    for (const auto& [base, other] :
         rank_.bootstrap().allgather("window", Described{range.base(), kind})) {
        if (other != kind) {
            throw std::invalid_argument("a window has to be of the same WindowKind on all ranks");
        }
        bases.push_back(base);
    }
    const auto is_for_copy = [&](bool floating) {
        return tuner_.table.row(ranks(), floating).algorithm(range.size()) == Algorithm::kCopy;
    };
    if (tuner_.most.copy_engine && kind == WindowKind::kSymmetric &&
        (is_for_copy(true) || is_for_copy(false))) {
        prepare_copy();
    }
    windows_.push_back(Window{std::move(range), kind, registered, std::move(bases)});
    return windows_.back().local();
}

CUdeviceptr Communicator::allocate(std::size_t bytes, WindowKind kind) {
    return add_window(SymmetricRange(rank_, bytes), kind, 0);
}

CUdeviceptr Communicator::register_memory(CUdeviceptr pointer, std::size_t bytes, WindowKind kind) {
    return add_window(SymmetricRange(rank_, pointer, bytes), kind, pointer);
}

void Communicator::release(CUdeviceptr window) {
    const auto found = std::find_if(windows_.begin(), windows_.end(),
                                    [&](const Window& one) { return one.local() == window; });
    if (found == windows_.end()) {
        throw std::invalid_argument(fmt::format("{:#x} is no window of this communicator", window));
    }
    cu_check(cuCtxSynchronize(), "cuCtxSynchronize()");
    const auto number = std::distance(windows_.begin(), found);
    for (const auto other : rank_.bootstrap().allgather("release window", number)) {
        if (other != number) {
            throw std::invalid_argument(
                fmt::format("the ranks release different windows: {} and {} of {}", number, other,
                            windows_.size()));
        }
    }
    windows_.erase(found);
}

std::optional<std::size_t> Communicator::Window::offset_of(CUdeviceptr pointer,
                                                           std::size_t bytes) const {
    for (const CUdeviceptr begin : {local(), registered}) {
        if (begin != 0 && pointer >= begin && pointer - begin <= range.size() &&
            bytes <= range.size() - (pointer - begin)) {
            return range.lead() + (pointer - begin);
        }
    }
    return std::nullopt;
}

std::optional<Communicator::Place> Communicator::find(CUdeviceptr pointer,
                                                      std::size_t bytes) const {
    for (const Window& window : windows_) {
        if (const auto offset = window.offset_of(pointer, bytes)) {
            return Place{&window, *offset};
        }
    }
    return std::nullopt;
}

TwoShotCall Communicator::two_shot_call(const Place& in, const Place& out, std::size_t count,
                                        const Reduction& reduction) const {
    auto* const first = state_.at<State>(0);
    TwoShotCall call{{&first->rendezvous, state_.stride(), rank(), ranks(), {}},
                     {&first->barrier, state_.stride(), rank(), ranks()},
                     count,
                     reduction,
                     timeout_.timeout()};
    for (int p = 0; p < ranks(); ++p) {
        call.rendezvous.mine[p] = {in.seen_by(p, rank()), out.seen_by(p, rank())};
    }
    return call;
}

void Communicator::compare_calls(const CallSize& call, ReduceOp op, Algorithm asked) {
    struct Call {
        std::uint64_t number;
        std::uint64_t count;
        DataType type;
        ReduceOp op;
        Algorithm asked;
        std::uint32_t windows;
        bool operator==(const Call&) const = default;
    };
    constexpr std::array<std::string_view, 3> kWindows{"in no window", "in plain windows",
                                                       "in symmetric windows"};
    const auto all = rank_.bootstrap().allgather(
        "all_reduce", Call{++calls_, call.count, call.type, op, asked,
                           call.windows ? static_cast<std::uint32_t>(*call.windows) + 1 : 0});
    const auto text = [&](std::size_t of) {
        const Call& one = all[of];
        return fmt::format("rank {} makes call {}: {} x {}, {}, by {}, buffers {}", of, one.number,
                           one.count, name_of(one.type), name_of(one.op), name_of(one.asked),
                           kWindows.at(one.windows));
    };
    for (std::size_t p = 1; p < all.size(); ++p) {
        if (all[p] != all[0]) {
            throw std::invalid_argument(
                fmt::format("the ranks' calls differ: {}; {}", text(0), text(p)));
        }
    }
}

void Communicator::follow_last_call(CUstream stream) {
    if (last_stream_ == stream || is_captured(stream)) {
        return;
    }
    if (last_stream_ && !is_captured(*last_stream_)) {
        last_call_.record(*last_stream_);
        cu_check(cuStreamWaitEvent(stream, last_call_.get(), 0), "cuStreamWaitEvent()");
    }
    last_stream_ = stream;
}

std::string Communicator::async_error() {
    try {
        rank_.bootstrap().throw_async_error("an AllReduce");
        timeout_.throw_if_gave_up();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

CallPlan Communicator::all_reduce(CUdeviceptr in, CUdeviceptr out, std::size_t count, DataType type,
                                  ReduceOp op, CUstream stream, Algorithm asked) {
    require_known(type, op);
    require_known(asked);
    if (count > std::numeric_limits<std::size_t>::max() / size_of(type)) {
        throw std::invalid_argument(
            fmt::format("{} elements are more than any memory holds", count));
    }
    const std::size_t bytes = count * size_of(type);
    if (in % size_of(type) != 0 || out % size_of(type) != 0) {
        throw std::invalid_argument(
            fmt::format("the addresses of {} buffers have to be multiples of {}", name_of(type),
                        size_of(type)));
    }
    const auto in_place = find(in, bytes);
    const auto out_place = find(out, bytes);
    // Memory in a window has two addresses, the caller's own and the window's.
    const bool one_window = in_place && out_place && in_place->window == out_place->window;
    if (one_window ? overlap(in_place->offset, out_place->offset, bytes)
                   : overlap(in, out, bytes)) {
        throw std::invalid_argument("input and output overlap: they have to be one buffer or two");
    }
    CallSize call{type, count, ranks(), std::nullopt};
    if (in_place && out_place) {
        call.windows = std::min(in_place->window->kind, out_place->window->kind);
    }
    if (check_) {
        compare_calls(call, op, asked);
    }
    CallPlan chosen = plan_call(call, asked, tuner_);
    if (log::enabled(log::Level::kInfo)) {
        log::info("rank {}: AllReduce of {} x {}, {}: {} with {} blocks of {} threads ({})", rank(),
                  count, name_of(type), name_of(op), name_of(chosen.algorithm), chosen.shape.blocks,
                  chosen.shape.threads, describe(chosen, ranks()));
    }
    if (count == 0) {
        return chosen;
    }
    follow_last_call(stream);
    const Reduction reduction(op, ranks(), is_signed_integer(type));
    if (chosen.algorithm == Algorithm::kTwoShot) {
        launch_two_shot(stream, chosen.shape, type,
                        two_shot_call(*in_place, *out_place, count, reduction));
        return chosen;
    }
    if (chosen.algorithm == Algorithm::kCopy) {
        prepare_copy();
        copy_->queue(stream, chosen.shape, type,
                     two_shot_call(*in_place, *out_place, count, reduction),
                     out_place->window->range.stride());
        return chosen;
    }
    const Scratch scratch = scratch_of(chosen.algorithm, ranks());
    for (std::size_t done = 0; done < count; done += chosen.piece) {
        if (done != 0) {  // a call of many pieces ends early where it cannot succeed any more
            rank_.bootstrap().throw_async_error("an AllReduce");
            timeout_.throw_if_gave_up();
        }
        scratch.launch(stream, chosen.shape, type,
                       {in + done * size_of(type), out + done * size_of(type),
                        std::min(chosen.piece, count - done), reduction,
                        state_.at<OneShotMemory>(rank(), scratch.memory),
                        state_.at<simt::Pack16>(0, scratch.banks), state_.stride(),
                        scratch.per_sender, timeout_.timeout(), rank(), ranks()});
    }
    return chosen;
}

}  // namespace symm
