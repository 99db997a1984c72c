#include "labs/06_allreduce/communicator/communicator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/graph.hpp"
#include "common/environment/environment.hpp"
#include "labs/06_allreduce/communicator/memory.hpp"

namespace symm {
namespace {

/// Returns `ranks`, if an AllReduce supports that many. Else throws.
int possible(int ranks, int most) {
    if (ranks < 1 || ranks > most) {
        throw std::invalid_argument(
            fmt::format("an AllReduce takes 1 to {} ranks, not {}", most, ranks));
    }
    return ranks;
}

std::chrono::nanoseconds limit_of(const CommunicatorOptions& options) {
    if (options.limit && options.limit->count() <= 0) {
        throw std::invalid_argument("CommunicatorOptions::limit must be more than 0");
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

}  // namespace

Communicator::Communicator(Rank& rank, const CommunicatorOptions& options)
    : rank_(rank),
      memory_(rank, state_bytes(possible(rank.size(),
                                         is_emulated() ? kMaxAllReduceRanks : kMaxRanksOnGpus))),
      timeout_(limit_of(options)),
      tuner_{common_table(rank), {}, TunerOverrides::from_environment()} {
    const unsigned max_blocks = options.max_blocks != 0
                                    ? options.max_blocks
                                    : static_cast<unsigned>(env::number("SYMM_MAX_BLOCKS"));
    tuner_.most = agree_on_shapes(rank, max_blocks, share_);
    rank_.bootstrap().together("communicator's memory", [&] { initialize(memory_, rank_.size()); });
}

Communicator::~Communicator() {
    rank_.tell_if_unwinding();
    if (std::uncaught_exceptions() > 0) {
        timeout_.abort();
    }
    end_calls();
}

void Communicator::end_calls() noexcept {
    // Some streams of calls may no longer exist, so this waits for the whole context. That wait has
    // no deadline: another thread watches the time, and the other ranks.
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
        cuCtxSynchronize();            // a destructor cannot report its error
    } catch (const std::exception&) {  // the thread did not start
        timeout_.abort();
        cuCtxSynchronize();
    }
}

std::size_t Communicator::state_bytes(int ranks) {
    possible(ranks, kMaxAllReduceRanks);
    return scratch_place(Algorithm::kPush, ranks).end(ranks);  // the last one
}

LaunchShape Communicator::two_shot_shape(DataType type, std::size_t count) const {
    require_known(type, ReduceOp::kSum);
    return plan_call({type, count, ranks(), true}, Algorithm::kTwoShot, tuner_).shape;
}

SymmetricPointer<CommunicatorMemory> Communicator::memory() const {
    return memory_.pointer<CommunicatorMemory>();
}

void Communicator::prepare_copy() {
    if (copy_ == nullptr) {
        copy_ = std::make_unique<TwoShotCopy>(rank_, memory().member(&CommunicatorMemory::copy),
                                              TwoShotCopy::scratch_bytes(ranks()));
    }
}

CUdeviceptr Communicator::add_window(SymmetricRange range, CUdeviceptr registered) {
    if (may_use_chunks_or_copy(range.size(), ranks(), tuner_)) {
        prepare_copy();  // first: if it throws, there is no window
    }
    return windows_.add(rank_, std::move(range), registered).local();
}

CUdeviceptr Communicator::allocate(std::size_t bytes) {
    return add_window(SymmetricRange(rank_, bytes), 0);
}

CUdeviceptr Communicator::register_memory(CUdeviceptr pointer, std::size_t bytes) {
    return add_window(SymmetricRange(rank_, pointer, bytes), pointer);
}

void Communicator::release(CUdeviceptr window) {
    cu_check(cuCtxSynchronize(), "cuCtxSynchronize()");
    windows_.release(rank_, window);
}

void Communicator::follow_last_call(CUstream stream) {
    if (last_stream_ == stream || is_captured(stream)) {
        return;
    }
    if (last_stream_) {
        if (is_captured(*last_stream_)) {
            throw std::invalid_argument(
                "the last call's stream is being captured, so a call on another stream cannot wait "
                "for that call: end the capture first");
        }
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

}  // namespace symm
