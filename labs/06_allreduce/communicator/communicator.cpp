#include "labs/06_allreduce/communicator/communicator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/graph.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/log.hpp"
#include "labs/06_allreduce/algorithms/kernels.hpp"
#include "labs/06_allreduce/algorithms/loaded/loaded.hpp"

namespace symm {
namespace {

/// Throws if an AllReduce does not support that many ranks.
void require_ranks(int ranks, int most) {
    if (ranks < 1 || ranks > most) {
        throw std::invalid_argument(
            fmt::format("an AllReduce takes 1 to {} ranks, not {}", most, ranks));
    }
}

Rank& possible(Rank& rank) {
    require_ranks(rank.size(), is_emulated() ? kMaxAllReduceRanks : kMaxRanksOnGpus);
    load_algorithms(rank.bootstrap());
    return rank;
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
    const TuningTable table =
        rank.bootstrap().together("tuning table", [] { return TuningTable::from_environment(); });
    return TuningTable::parse(rank.bootstrap().allgather_text("tuning table", table.text())[0],
                              "rank 0's table");
}

/// What the environment sets.
struct Settings {
    TunerOverrides overrides;
    unsigned max_blocks;
    int dependent_launch;
    int check;

    static Settings read() {
        return {TunerOverrides::from_environment(),
                static_cast<unsigned>(env::number("SYMM_MAX_BLOCKS")),
                static_cast<int>(env::number("SYMM_DEPENDENT_LAUNCH")),
                static_cast<int>(env::number("SYMM_CHECK"))};
    }
    std::string text() const {
        return fmt::format(
            "SYMM_ALGO={} SYMM_BLOCKS={} SYMM_THREADS={} SYMM_MAX_BLOCKS={} "
            "SYMM_DEPENDENT_LAUNCH={} SYMM_CHECK={}",
            name_of(overrides.algorithm), overrides.blocks, overrides.threads, max_blocks,
            dependent_launch, check);
    }
};

/// Rank 0's settings, for all ranks: calls that differ would wait for each other, or end with wrong
/// results.
Settings common_settings(Rank& rank) {
    const Settings mine = rank.bootstrap().together("settings", [] { return Settings::read(); });
    const std::vector<Settings> all = rank.bootstrap().allgather("settings", mine);
    for (std::size_t p = 1; p < all.size() && rank.rank() == 0; ++p) {
        if (all[p].text() != all[0].text()) {
            log::warn("rank {}'s environment has {}, but all ranks use rank 0's: {}", p,
                      all[p].text(), all[0].text());
            break;
        }
    }
    return all[0];
}

}  // namespace

Communicator::Communicator(Rank& rank, const CommunicatorOptions& options)
    : rank_(rank),
      current_(rank.gpu()),
      relaxed_(std::in_place),
      workspace_(std::make_unique<Workspace>(possible(rank))),
      timeout_(rank.bootstrap().together("kernel timeout",
                                         [&] { return KernelTimeout(limit_of(options)); })),
      tuner_{common_table(rank), rank.size(), {}, {}},
      last_call_(
          rank.bootstrap().together("event", [] { return Event(CU_EVENT_DISABLE_TIMING); })) {
    const Settings settings = common_settings(rank);
    check_ = settings.check == 1;
    tuner_.overrides = settings.overrides;
    const unsigned blocks = options.max_blocks != 0 ? options.max_blocks : settings.max_blocks;
    is_limited_ = blocks != 0;
    tuner_.most = agree_on_shapes(rank, blocks, share_);
    may_overlap_ = settings.dependent_launch == 1 && rank.most_on_a_device() == 1 &&
                   rank.bootstrap().together("compute capability", [&] {
                       return is_emulated() ||
                              device_attribute(rank.device(),
                                               CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9;
                   });
    workspace_->throw_if_failed = [this] {
        rank_.bootstrap().throw_async_error("the next piece");
        timeout_.throw_if_gave_up();
    };
    rank_.bootstrap().together("watch over peers", [&] {
        watch_ = std::make_unique<PeerWatch>(rank_.bootstrap(), timeout_);
    });
    relaxed_.reset();
    current_.reset();
}

Communicator::~Communicator() {
    try {
        current_.emplace(rank_.gpu());
    } catch (const std::exception&) {  // the driver has ended
    }
    end_calls(rank_, timeout_);
}

std::size_t Communicator::state_bytes(int ranks) {
    require_ranks(ranks, kMaxAllReduceRanks);
    return Workspace::bytes(ranks);
}

std::size_t Communicator::most_state_bytes(int ranks) {
    return state_bytes(ranks) + SlotMemory::bytes(ranks);
}

LaunchShape Communicator::two_shot_shape(DataType type, std::size_t count) const {
    require_known(type);
    return tuner_.plan({{type}, 0, 0, count}, true, Algorithm::kTwoShot).shape;
}

LaunchOrder Communicator::launch_order(unsigned blocks) const {
    const bool fit = is_emulated() || tuner_.most.alone ||
                     2 * blocks <= tuner_.most.any.blocks;  // residency.hpp
    return may_overlap_ && fit ? LaunchOrder::kDependent : LaunchOrder::kAfter;
}

void Communicator::prepare(const AlgorithmRow& row) {
    bool& is_prepared = prepared_.at(static_cast<std::size_t>(row.algorithm));
    if (!is_prepared && row.kernels->prepare != nullptr) {
        const RelaxedCapture relaxed;  // the user may be capturing
        row.kernels->prepare(*workspace_);
        is_prepared = true;
    }
}

CUdeviceptr Communicator::add_window(SymmetricRange range, CUdeviceptr registered) {
    for (const AlgorithmRow& row : algorithm_rows()) {
        if (tuner_.may_take(row, range.size())) {
            prepare(row);  // if it throws, there is no window
        }
    }
    Window& made = windows_.add(rank_, std::move(range), registered);
    made.calls_before = calls_.count();
    return made.local();
}

CUdeviceptr Communicator::allocate(std::size_t bytes) {
    const CurrentContext current(rank_.gpu());
    return add_window(SymmetricRange(rank_, bytes), 0);
}

CUdeviceptr Communicator::register_memory(CUdeviceptr pointer, std::size_t bytes) {
    const CurrentContext current(rank_.gpu());
    return add_window(SymmetricRange(rank_, pointer, bytes), pointer);
}

void Communicator::release(CUdeviceptr window) {
    const CurrentContext current(rank_.gpu());
    rank_.bootstrap().together("work that may use the window",
                               [] { cu_check(cuCtxSynchronize(), "cuCtxSynchronize()"); });
    windows_.release(rank_, window);
}

void Communicator::retire(CUdeviceptr window) {
    const CurrentContext current(rank_.gpu());
    const RelaxedCapture relaxed;
    std::list<Window> taken = windows_.take(window);
    if (taken.front().calls_before != calls_.count()) {
        retired_.splice(retired_.end(), taken);
    }
}

const SymmetricRange& Communicator::add_memory(std::size_t bytes,
                                               const std::function<void(CUdeviceptr)>& initialize) {
    const CurrentContext current(rank_.gpu());
    const SymmetricRange& range = windows_.add(rank_, SymmetricRange(rank_, bytes), 0).range;
    rank_.bootstrap().together("memory of a collective", [&] { initialize(range.local()); });
    return range;
}

unsigned Communicator::agree_on_blocks(const std::function<unsigned()>& resident) {
    const CurrentContext current(rank_.gpu());
    unsigned blocks = rank_.bootstrap().together("kernel's resident blocks", resident) /
                      static_cast<unsigned>(rank_.most_on_a_device());
    if (is_limited_) {  // other communicators have the rest of the device
        blocks = std::min(blocks, tuner_.most.any.blocks);
    }
    for (const unsigned other : rank_.bootstrap().allgather("resident blocks", blocks)) {
        blocks = std::min(blocks, other);
    }
    if (blocks == 0) {
        throw std::invalid_argument(
            "a device cannot keep one block of the kernel resident for each of its ranks");
    }
    return blocks;
}

bool Communicator::is_last_stream(CUstream stream) const {
    // This handle names another stream in each thread.
    return last_stream_ == stream &&
           (stream != CU_STREAM_PER_THREAD || last_thread_ == std::this_thread::get_id());
}

void Communicator::require_turn(CUstream stream) const {
    if ((stream == nullptr || stream == CU_STREAM_LEGACY) && rank_.most_on_a_device() > 1) {
        throw std::invalid_argument(
            "ranks that are threads and share a device share its default stream, so their kernels "
            "would wait for each other for ever: use a stream for each rank");
    }
    if (last_stream_ && !is_last_stream(stream) && last_stream_ != CU_STREAM_PER_THREAD &&
        !is_captured(stream) && is_captured(*last_stream_)) {
        throw std::invalid_argument(
            "the last call's stream is being captured, so a call on another stream cannot wait "
            "for that call: end the capture first");
    }
}

void Communicator::follow_last_call(CUstream stream) {
    if (!last_stream_ || is_last_stream(stream) || is_captured(stream)) {
        return;
    }
    if (last_stream_ != CU_STREAM_PER_THREAD) {  // else it is recorded already
        last_call_.record(*last_stream_);
    }
    cu_check(cuStreamWaitEvent(stream, last_call_.get(), 0), "cuStreamWaitEvent()");
}

void Communicator::free_retired(CUstream stream) {
    if ((retired_.empty() && leaving_.empty()) || is_captured(stream)) {
        return;
    }
    const RelaxedCapture relaxed;
    if (leaving_.empty()) {
        leaving_after_.emplace(CU_EVENT_DISABLE_TIMING).record(stream);
        leaving_.swap(retired_);
    } else if (const CUresult state = cuEventQuery(leaving_after_->get());
               state != CUDA_ERROR_NOT_READY) {
        cu_check(state, "cuEventQuery()");
        leaving_.clear();
    }
}

void Communicator::remember_call(CUstream stream) {
    const bool per_thread = stream == CU_STREAM_PER_THREAD;
    if ((is_last_stream(stream) && !per_thread) || is_captured(stream)) {
        return;
    }
    if (per_thread) {  // another thread could not record it
        last_call_.record(stream);
    }
    last_stream_ = stream;
    last_thread_ = std::this_thread::get_id();
}

void Communicator::finish() {
    const CurrentContext current(rank_.gpu());
    end_calls(rank_, timeout_);
    timeout_.throw_if_gave_up();
}

void Communicator::throw_async_error() {
    const CurrentContext current(rank_.gpu());
    rank_.bootstrap().throw_async_error("a call");
    timeout_.throw_if_gave_up();
}

std::string Communicator::async_error() {
    try {
        throw_async_error();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

}  // namespace symm
