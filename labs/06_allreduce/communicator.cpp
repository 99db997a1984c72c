#include "labs/06_allreduce/communicator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <limits>
#include <stdexcept>
#include <utility>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/driver.hpp"
#include "common/environment/environment.hpp"

namespace symm {
namespace {

// Where things lie in each rank's state.
constexpr std::size_t kCopyOffset = 8 * 1024;
constexpr std::size_t kOneShotOffset = 16 * 1024;
constexpr std::size_t kSentinelOffset = 24 * 1024;
constexpr std::size_t kScratchOffset = 32 * 1024;
static_assert(sizeof(BarrierMemory) <= kCopyOffset);
static_assert(sizeof(CopyMemory) <= kOneShotOffset - kCopyOffset);
static_assert(sizeof(OneShotMemory) <= kSentinelOffset - kOneShotOffset);
static_assert(sizeof(OneShotMemory) <= kScratchOffset - kSentinelOffset);
static_assert(kMaxAllReduceRanks <= kMaxBarrierRanks);

/// A packet carries eight bytes of payload.
constexpr std::size_t kPacketsPerBank = kOneShotLimit / 8;
static_assert(std::has_single_bit(kPacketsPerBank));

int ranks_that_may_meet(const Rank& rank) {
    if (rank.size() > kMaxAllReduceRanks) {
        throw std::invalid_argument(
            fmt::format("an AllReduce has 1 to {} ranks, not {}", kMaxAllReduceRanks, rank.size()));
    }
    return rank.size();
}

/// Where the banks of the sentinel begin, behind those of packets.
std::size_t sentinel_banks(int ranks) {
    return kScratchOffset +
           2 * static_cast<std::size_t>(ranks) * kPacketsPerBank * sizeof(simt::Pack16);
}

/// How many blocks of `threads` threads the device keeps resident.
struct Resident {
    unsigned any = std::numeric_limits<unsigned>::max();  ///< Of any algorithm's largest kernel.
    unsigned sentinel = any;
};

Resident resident_blocks(int ranks, unsigned threads) {
    Resident resident;
    for (const DataType type : kDataTypes) {
        if (is_floating(type)) {
            resident.sentinel =
                std::min(resident.sentinel, sentinel_resident_blocks(type, ranks, threads));
        }
        resident.any = std::min({resident.any, one_shot_resident_blocks(type, ranks, threads),
                                 two_shot_resident_blocks(type, ranks, threads)});
    }
    resident.any = std::min(resident.any, resident.sentinel);
    return resident;
}

bool is_captured(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cu_check(cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing()");
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool overlap(CUdeviceptr a, CUdeviceptr b, std::size_t bytes) {
    return a < b + bytes && b < a + bytes;
}

}  // namespace

Communicator::Communicator(Rank& rank, const CommunicatorOptions& options)
    : rank_(rank), state_(rank, state_bytes(ranks_that_may_meet(rank))), timeout_(options.limit) {
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
    most_ = {most, most, is_emulated() || rank.most_on_a_device() == 1};
    // Of the sentinel's smaller kernel more blocks fit than of the largest one. But they spread
    // over all multiprocessors, so a communicator that launches them has the device to itself.
    const bool alone = !is_emulated() && max_blocks == 0 && rank.most_on_a_device() == 1;
    if (alone) {
        most_.sentinel.blocks = std::min(kMaxBlocks, resident.sentinel);
    }
    // In two shots block b of each rank waits for block b of every other, so all ranks launch as
    // many blocks as the rank that can launch the fewest. In one shot that is only simpler.
    for (const MostShapes& other : rank.bootstrap().allgather("launch shapes", most_)) {
        most_.any.blocks = std::min(most_.any.blocks, other.any.blocks);
        most_.sentinel.blocks = std::min(most_.sentinel.blocks, other.sentinel.blocks);
    }
    rank_.bootstrap().together("resident blocks", [&] {
        if (most_.any.blocks == 0) {
            throw std::invalid_argument(
                fmt::format("device {} keeps {} blocks of {} threads resident at once, not one per "
                            "rank of this "
                            "process: use fewer ranks, or --mode process",
                            rank.device(), resident.any, most.threads));
        }
        share_.emplace(rank.device(), alone ? resident.any : most_.any.blocks, resident.any);
        const std::size_t zeros = sentinel_banks(rank.size());
        zero(state_.local(), zeros);
        fill(state_.local() + zeros, 0xff, state_.size() - zeros);  // the sentinel
    });
}

Communicator::~Communicator() {
    rank_.tell_if_unwinding();
    if (std::uncaught_exceptions() > 0) {
        timeout_.abort();
        cuCtxSynchronize();  // its result is ignored: the exception that is thrown says more
    }
}

std::size_t Communicator::state_bytes(int ranks) {
    return sentinel_banks(ranks) + 2 * static_cast<std::size_t>(ranks - 1) * sentinel_limit(ranks);
}

void Communicator::prepare_copy() {
    if (!copy_) {
        copy_.emplace(rank_, state_.at<CopyMemory>(0, kCopyOffset), state_.stride());
    }
}

CUdeviceptr Communicator::add_window(SymmetricRange range) {
    if (most_.copy_engine && range.size() > two_shot_preferred(ranks())) {
        prepare_copy();
    }
    return windows_.emplace_back(std::move(range)).local();
}

CUdeviceptr Communicator::allocate(std::size_t bytes) {
    return add_window(SymmetricRange(rank_, bytes));
}

CUdeviceptr Communicator::register_memory(CUdeviceptr pointer, std::size_t bytes) {
    return add_window(SymmetricRange(rank_, pointer, bytes));
}

void Communicator::release(CUdeviceptr window) {
    const auto found =
        std::find_if(windows_.begin(), windows_.end(),
                     [&](const SymmetricRange& range) { return range.local() == window; });
    if (found == windows_.end()) {
        throw std::invalid_argument(fmt::format("{:#x} is no window of this communicator", window));
    }
    cu_check(cuCtxSynchronize(), "cuCtxSynchronize()");  // kernels end: their waits have a limit
    rank_.bootstrap().barrier("release window");
    windows_.erase(found);
}

std::optional<SymmetricPointer> Communicator::find(CUdeviceptr pointer, std::size_t bytes) const {
    for (const SymmetricRange& range : windows_) {
        if (pointer >= range.local() && pointer - range.local() <= range.size() &&
            bytes <= range.size() - (pointer - range.local())) {
            return SymmetricPointer{range.peer(0) + (pointer - range.local()), range.stride()};
        }
    }
    return std::nullopt;
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
    if (in != out && overlap(in, out, bytes)) {
        throw std::invalid_argument("input and output overlap: they have to be one buffer or two");
    }
    const auto in_place = find(in, bytes);
    const auto out_place = find(out, bytes);
    CallPlan chosen =
        plan_call({type, count, ranks(), in_place && out_place}, asked, most_, overrides_);
    if (count == 0) {
        return chosen;
    }
    follow_last_call(stream);
    const simt::Timeout timeout = timeout_.timeout();
    const Reduction reduction(op, ranks(), is_signed_integer(type));
    if (chosen.algorithm == Algorithm::kTwoShot || chosen.algorithm == Algorithm::kCopy) {
        const TwoShotCall call{*in_place,
                               *out_place,
                               count,
                               reduction,
                               {state_.at<BarrierMemory>(0), state_.stride(), rank(), ranks()},
                               timeout};
        if (chosen.algorithm == Algorithm::kTwoShot) {
            launch_two_shot(stream, chosen.shape, type, call);
        } else {
            prepare_copy();
            copy_->queue(stream, chosen.shape, type, call);
        }
        return chosen;
    }
    for (std::size_t done = 0; done < count; done += chosen.piece) {
        const CUdeviceptr from = in + done * size_of(type);
        const CUdeviceptr to = out + done * size_of(type);
        const std::size_t now = std::min(chosen.piece, count - done);
        if (chosen.algorithm == Algorithm::kOneShot) {
            launch_one_shot(
                stream, chosen.shape, type,
                {from, to, now, reduction, state_.at<OneShotMemory>(rank(), kOneShotOffset),
                 state_.at<simt::Pack16>(0, kScratchOffset), state_.stride(), kPacketsPerBank,
                 timeout, rank(), ranks()});
        } else {
            launch_sentinel(
                stream, chosen.shape, type,
                {from, to, now, reduction, state_.at<OneShotMemory>(rank(), kSentinelOffset),
                 state_.at<simt::Pack16>(0, sentinel_banks(ranks())), state_.stride(),
                 sentinel_limit(ranks()) / sizeof(simt::Pack16), timeout, rank(), ranks()});
        }
    }
    return chosen;
}

}  // namespace symm
