#include "labs/06_allreduce/drop_in/entry.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
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
    switch (result) {
        case SYMM_SUCCESS:
            return kSuccess;
        case SYMM_ERROR_INVALID_ARGUMENT:
            return kInvalidArgument;
        case SYMM_ERROR_RANK:
            return kRemoteError;
        case SYMM_ERROR_CUDA:
            return kUnhandledCudaError;
        case SYMM_ERROR_SYSTEM:
            return kSystemError;
        default:
            return kInternalError;
    }
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

}  // namespace

const char* AllReduceCall::why_nccls() const {
    return count == 0                         ? "no elements"
           : type < 0 || type > SYMM_BFLOAT16 ? "elements of a type that symm.h lacks"
           : op < 0 || op > SYMM_AVG          ? "an operation that the program made (PreMulSum)"
           : count > (std::size_t{1} << 40)   ? "more elements than any memory has"
                                              : nullptr;
}

std::size_t AllReduceCall::bytes() const {
    return count * size_of(static_cast<DataType>(type));  // numbered as in nccl.h
}

bool is_captured(CUstream stream, cuuint64_t* id) {
    auto status = CU_STREAM_CAPTURE_STATUS_NONE;
#if CUDA_VERSION >= 13000
    check(cuStreamGetCaptureInfo(stream, &status, id, nullptr, nullptr, nullptr, nullptr),
#else
    check(cuStreamGetCaptureInfo(stream, &status, id, nullptr, nullptr, nullptr),
#endif
          "cuStreamGetCaptureInfo()");
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

Entry::Entry(const Place& place) : place_(place) {
    if (place.ranks == 1) {
        pass("a single rank");
    } else if (place.ranks > kMostRanks) {
        pass("more than 8 ranks");
    }
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
    return work.attach || !work.windows.empty() || !released_.empty() ||
           env::number("SYMM_CHECK") == 1 ||
           // A communicator's first large call makes memory for it, with all ranks.
           std::any_of(work.calls.begin(), work.calls.end(),
                       [&](const AllReduceCall& call) { return call.bytes() > most_bytes_; });
}

Result Entry::run(const Work& work) {
    const std::lock_guard lock(mutex_);
    std::optional<DeviceScope> scope;  // the program may be capturing
    if (!work.windows.empty() || !released_.empty() || work.attach) {
        scope.emplace(place_.device);
    }
    for (void* window : std::exchange(released_, {})) {
        if (const auto comm = ours();
            comm && symm_window_release(comm.get(), window) != SYMM_SUCCESS) {
            log::error("a window cannot be released: {}", symm_last_error());
            return kInternalError;
        }
    }
    for (const RegisteredWindow& window : work.windows) {
        windows_.push_back(window);
        if (const auto comm = ours()) {
            add(comm.get(), windows_.back());
        }
    }
    if (work.attach && state_ == State::kNew) {
        attach();
    }
    Result result = kSuccess;
    for (const AllReduceCall& call : work.calls) {
        const auto comm = ours();
        const Result one = comm ? launch(comm.get(), call)
                                : nccl::AllReduce(call.in, call.out, call.count, call.type, call.op,
                                                  place_.comm, call.stream);
        result = result == kSuccess ? one : result;
    }
    return result;
}

void Entry::attach() {
    std::string why;
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
    } catch (const std::exception& error) {  // NCCL cannot be used any more, either
        why = error.what();
    }
    if (!why.empty()) {
        log::info("rank {} of an ncclComm of {}: calls are NCCL's: {}", place_.rank, place_.ranks,
                  why);
        pass(keep(why));
        return;
    }
    for (RegisteredWindow& window : windows_) {
        add(made.get(), window);
    }
    {
        const std::lock_guard lock(ours_mutex_);
        ours_ = std::move(made);
    }
    note_communicator(place_.ranks, "");
    state_ = State::kOurs;
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
        if (found->ours != nullptr) {
            released_.push_back(found->ours);
        }
        windows_.erase(found);
    }
}

Result Entry::launch(symm_comm* comm, const AllReduceCall& call) {
    try {
        const DeviceScope scope(place_.device);
        const Result result = queue(comm, call);
        if (result == kSuccess) {
            most_bytes_ = std::max(most_bytes_, call.bytes());
            count_ours(call.bytes());
        }
        return result;
    } catch (const std::exception& error) {
        log::error("ncclAllReduce on rank {}: {}", place_.rank, error.what());
        return kUnhandledCudaError;
    }
}

Result Entry::queue(symm_comm* comm, const AllReduceCall& call) {
    // Kernels that gave up have left no result, and those after them would not either.
    symm_result result = symm_comm_gave_up(comm);
    cuuint64_t id = 0;
    const bool captures = is_captured(call.stream, &id);
    if (result == SYMM_SUCCESS && captures) {
        const Captured& last = captured(id);
        if (last.stream != nullptr && last.stream != call.stream) {
            check(cuStreamWaitEvent(call.stream, last.after, 0), "cuStreamWaitEvent()");
        }
    }
    result = result != SYMM_SUCCESS ? result
                                    : symm_all_reduce(comm, call.in, call.out, call.count,
                                                      static_cast<symm_type>(call.type),
                                                      static_cast<symm_op>(call.op), call.stream);
    if (result != SYMM_SUCCESS) {
        log::error("ncclAllReduce on rank {}: {}", place_.rank, symm_last_error());
    } else if (captures) {
        Captured& last = captured(id);
        check(cuEventRecord(last.after, call.stream), "cuEventRecord()");
        last.stream = call.stream;
    }
    return result_of(result);
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
    detach(State::kPassed, why);
}

Result Entry::detach(State next, const char* why) {
    const std::lock_guard lock(mutex_);
    Result result = kSuccess;
    if (!aborted_ && has_failed()) {
        log::error("rank {} leaves its ncclComm: {}", place_.rank, symm_last_error());
        result = kRemoteError;
    }
    std::shared_ptr<symm_comm> last;
    {
        const std::lock_guard pointer_lock(ours_mutex_);
        last.swap(ours_);
    }
    why_passed_ = why;
    state_ = next;
    released_.clear();
    for (RegisteredWindow& window : windows_) {
        window.ours = nullptr;
    }
    for (const Captured& one : std::exchange(captures_, {})) {
        cuEventDestroy(one.after);
    }
    most_bytes_ = 0;
    return result;
}

void Entry::resume() {
    auto suspended = State::kSuspended;
    state_.compare_exchange_strong(suspended, State::kNew);
}

}  // namespace symm::drop_in
