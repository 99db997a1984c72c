#include "labs/06_allreduce/drop_in/entry.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "common/sys/environment.hpp"
#include "common/sys/log.hpp"
#include "labs/05_device_prims/reduction/data_type.hpp"
#include "labs/06_allreduce/drop_in/device_scope.hpp"
#include "labs/06_allreduce/drop_in/stats.hpp"

namespace symm::drop_in {
namespace {

constexpr int kMostRanks = Exchange::kMostRanks;
constexpr unsigned kMostBlocks = 64;  // the program's kernels need multiprocessors, too
constexpr std::size_t kMostCaptures = 16;

Result result_of(symm_result result) {
    constexpr std::array kResults{kSuccess,     kInvalidArgument, kRemoteError, kUnhandledCudaError,
                                  kSystemError, kInternalError};
    return kResults.at(static_cast<std::size_t>(result));
}

/// What a rank has come to, for the others.
struct Outcome {
    symm_result result;
    int met;  ///< 0: it failed before it met the others, who then fail because of that.
    char why[200];
};

/// A text that is never freed: reasons are read at the exit.
const char* keep(std::string_view text) {
    return (new std::string(text))->c_str();
}

/// The number of the capture that the stream is in, if it is in one.
std::optional<cuuint64_t> capture_of(CUstream stream) {
    auto status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
#if CUDA_VERSION >= 13000
    check(cuStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr),
#else
    check(cuStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr),
#endif
          "cuStreamGetCaptureInfo()");
    return status == CU_STREAM_CAPTURE_STATUS_NONE ? std::nullopt : std::optional(id);
}

}  // namespace

const char* AllReduceCall::why_nccls() const {
    return count == 0                         ? "no elements"
           : type < 0 || type > SYMM_BFLOAT16 ? "elements of a type that symm.h lacks"
           : op < 0 || op > SYMM_AVG          ? "an operation that the program made (PreMulSum)"
                                              : nullptr;
}

std::size_t AllReduceCall::bytes() const {
    return count * size_of(static_cast<DataType>(type));  // numbered as in nccl.h
}

Entry::Entry(const Place& place) : place_(place) {
    if (place.ranks == 1) {
        pass("a single rank");
    } else if (place.ranks > kMostRanks) {
        pass("more than 8 ranks");
    }
}

bool Entry::is_captured(CUstream stream) const {
    const DeviceScope scope(place_.device);  // the default stream is the current context's
    return capture_of(stream).has_value();
}

void Entry::pass(const char* why) {
    why_passed_ = why;
    state_ = State::kPassed;
    note_communicator(place_.ranks, why);
}

std::shared_ptr<symm_comm> Entry::ours() {
    const std::lock_guard lock(ours_mutex_);
    return ours_;
}

bool Entry::may_wait(const Work& work) {
    const std::lock_guard lock(mutex_);
    return work.attach || !work.registrations.empty() ||
           std::any_of(work.calls.begin(), work.calls.end(), [&](const AllReduceCall& call) {
               return symm_all_reduce_may_wait(ours_.get(), call.in, call.out, call.count,
                                               static_cast<symm_type>(call.type),
                                               static_cast<symm_op>(call.op), call.stream) != 0;
           });
}

Result Entry::run(const Work& work, Result nccls) {
    const std::lock_guard lock(mutex_);
    while (nccls == kInProgress) {
        std::this_thread::sleep_for(std::chrono::microseconds{50});
        int error = kInternalError;  // after an abort NCCL is not asked
        const Result asked = aborted_ ? kSuccess : nccl::CommGetAsyncError(place_.comm, &error);
        nccls = asked != kSuccess ? asked : static_cast<Result>(error);
    }
    if (nccls != kSuccess) {
        return nccls;
    }
    std::optional<DeviceScope> scope;  // the program may be capturing
    if (!work.registrations.empty() || work.attach) {
        scope.emplace(place_.device);
    }
    for (const Registration& one : work.registrations) {
        if (*one.handle != nullptr) {  // null: NCCL cannot use the memory as a window
            windows_.push_back({*one.handle, one.memory, one.bytes});
            if (const auto comm = ours()) {
                add(comm.get(), windows_.back());
            }
        }
    }
    Result result = work.attach && state_ == State::kNew ? attach() : kSuccess;
    for (const AllReduceCall& call : work.calls) {
        const auto comm = ours();
        const Result one = comm ? launch(comm.get(), call) : kInvalidUsage;  // it has ended
        result = result == kSuccess ? one : result;
    }
    return result;
}

void Entry::finish_thread(const Work& work) const {
    if (std::any_of(work.calls.begin(), work.calls.end(),
                    [](const auto& call) { return call.stream == CU_STREAM_PER_THREAD; })) {
        const DeviceScope scope(place_.device);
        check(cuStreamSynchronize(CU_STREAM_PER_THREAD), "cuStreamSynchronize()");
    }
}

Result Entry::attach() {
    std::string why;
    Result met = kSuccess;
    std::shared_ptr<symm_comm> made;
    try {
        Exchange exchange(place_, aborted_);
        symm_options options = SYMM_OPTIONS_INIT;
        options.device = place_.device;
        options.max_blocks = env::is_set("SYMM_MAX_BLOCKS") ? 0 : kMostBlocks;
        const auto gather = [](void* context, const void* mine, void* all, std::size_t bytes) {
            try {
                static_cast<Exchange*>(context)->allgather(mine, all, bytes);
                return 0;
            } catch (const std::exception& error) {
                log::error("the ranks of an ncclComm cannot meet: {}", error.what());
                return 1;
            }
        };
        symm_comm* comm = nullptr;
        const symm_result result = symm_comm_create_by_allgather(&comm, place_.rank, place_.ranks,
                                                                 gather, &exchange, &options);
        made.reset(comm, symm_comm_destroy);
        Outcome mine{result, exchange.count(), {}};
        std::string_view(result == SYMM_SUCCESS ? "" : symm_last_error())
            .copy(mine.why, sizeof mine.why - 1);
        if (mine.met == 0) {  // the others wait for its bytes
            std::array<char, kMostRanks> ignored{};
            exchange.allgather(ignored.data(), ignored.data(), 1);
        }
        std::array<Outcome, kMostRanks> all{};
        exchange.allgather(&mine, all.data(), sizeof mine);
        for (int rank = 0; rank < place_.ranks; ++rank) {
            const Outcome& outcome = all.at(static_cast<std::size_t>(rank));
            if (outcome.result != SYMM_SUCCESS && (why.empty() || outcome.met == 0)) {
                why = fmt::format("rank {}: {}", rank, outcome.why);
            }
        }
    } catch (const std::exception& error) {  // the other ranks may wait for this one
        why = error.what();
        met = kInternalError;
    }
    if (!why.empty()) {
        log::write(met == kSuccess ? log::Level::kInfo : log::Level::kError,
                   fmt::format("rank {} of an ncclComm of {}: calls are NCCL's: {}", place_.rank,
                               place_.ranks, why));
        pass(keep(why));
        return met;
    }
    for (RegisteredWindow& window : windows_) {
        add(made.get(), window);
    }
    {
        const std::lock_guard lock(ours_mutex_);
        ours_ = made;
    }
    if (aborted_) {  // by abort(), which did not see it yet
        symm_comm_abort(made.get());
    }
    note_communicator(place_.ranks, "");
    state_ = State::kOurs;
    return kSuccess;
}

void Entry::add(symm_comm* comm, RegisteredWindow& window) {
    if (symm_window_register(comm, window.memory, window.bytes, &window.ours) != SYMM_SUCCESS) {
        window.ours = nullptr;  // on all ranks
        log::warn("a window of NCCL's is none of ours, so its calls are staged: {}",
                  symm_last_error());
    }
}

void Entry::deregister(ncclWindow_vidmem* window) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(windows_.begin(), windows_.end(),
                     [&](const RegisteredWindow& one) { return one.handle == window; });
    if (found != windows_.end()) {
        if (const auto comm = ours(); comm && found->ours != nullptr &&
                                      symm_window_retire(comm.get(), found->ours) != SYMM_SUCCESS) {
            log::error("a window cannot be given back: {}", symm_last_error());
        }
        windows_.erase(found);
    }
}

Result Entry::launch(symm_comm* comm, const AllReduceCall& call) {
    try {
        const DeviceScope scope(place_.device);
        const auto capture = capture_of(call.stream);
        Captured* const last = capture ? &captured(*capture) : nullptr;
        if (last != nullptr && last->stream != nullptr && last->stream != call.stream) {
            check(cuStreamWaitEvent(call.stream, last->after, 0), "cuStreamWaitEvent()");
        }
        // Kernels that gave up have left no result, and those after them would not either.
        symm_result result = symm_comm_gave_up(comm);
        if (result == SYMM_SUCCESS) {
            result = symm_all_reduce(comm, call.in, call.out, call.count,
                                     static_cast<symm_type>(call.type),
                                     static_cast<symm_op>(call.op), call.stream);
        }
        if (result != SYMM_SUCCESS) {
            log::error("ncclAllReduce on rank {}: {}", place_.rank, symm_last_error());
            return result_of(result);
        }
        if (last != nullptr) {
            check(cuEventRecord(last->after, call.stream), "cuEventRecord()");
            last->stream = call.stream;
        }
        count_ours(call.bytes());
        return kSuccess;
    } catch (const std::exception& error) {
        log::error("ncclAllReduce on rank {}: {}", place_.rank, error.what());
        return kUnhandledCudaError;
    }
}

Entry::Captured& Entry::captured(cuuint64_t id) {
    const auto found = std::find_if(captures_.begin(), captures_.end(),
                                    [&](const Captured& one) { return one.id == id; });
    if (found != captures_.end()) {
        return *found;
    }
    if (captures_.size() == kMostCaptures) {  // the oldest has ended long ago
        cuEventDestroy(captures_.front().after);
        captures_.pop_front();
    }
    CUevent after = nullptr;
    check(cuEventCreate(&after, CU_EVENT_DISABLE_TIMING), "cuEventCreate()");
    return captures_.emplace_back(Captured{id, nullptr, after});
}

bool Entry::has_failed() {
    const auto comm = ours();
    if (comm == nullptr) {
        return false;
    }
    const DeviceScope scope(place_.device);  // another thread may be capturing
    return symm_comm_gave_up(comm.get()) != SYMM_SUCCESS;
}

void Entry::abort(const char* why) {
    aborted_ = true;
    if (const auto comm = ours()) {
        symm_comm_abort(comm.get());
    }
    // Ranks that attach may wait inside of NCCL, and only NCCL's own abort ends that. The clock is
    // one whose lock ThreadSanitizer knows.
    const std::unique_lock lock(mutex_, std::chrono::system_clock::now() + std::chrono::seconds{1});
    if (lock) {
        leave(State::kPassed, why);
    }
}

Result Entry::detach(State next, const char* why) {
    const std::lock_guard lock(mutex_);
    return leave(next, why);
}

Result Entry::leave(State next, const char* why) {
    Result result = kSuccess;
    if (const auto comm = ours(); comm && !aborted_) {
        const DeviceScope scope(place_.device);              // another thread may be capturing
        if (symm_comm_finish(comm.get()) != SYMM_SUCCESS) {  // which abort() ends
            log::error("rank {} leaves its ncclComm: {}", place_.rank, symm_last_error());
            result = kRemoteError;
        }
    }
    std::shared_ptr<symm_comm> last;
    {
        const std::lock_guard pointer_lock(ours_mutex_);
        last.swap(ours_);
    }
    why_passed_ = why;
    state_ = next;
    for (RegisteredWindow& window : windows_) {
        window.ours = nullptr;
    }
    for (const Captured& one : std::exchange(captures_, {})) {
        cuEventDestroy(one.after);
    }
    return result;
}

void Entry::resume() {
    auto suspended = State::kSuspended;
    state_.compare_exchange_strong(suspended, State::kNew);
}

}  // namespace symm::drop_in
