#include "symm/nccl/entry.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "common/sys/environment.hpp"
#include "common/sys/log.hpp"
#include "symm/nccl/device_scope.hpp"
#include "symm/nccl/last_error.hpp"
#include "symm/nccl/stats.hpp"

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
    int multicast;
    std::size_t most;  ///< SYMM_NCCL_MOST; 0: it is not set.
    int all;           ///< SYMM_NCCL_COLLECTIVES=all.
    char why[200];
};

/// Whether NCCL may let the switch add up, on this rank's GPU.
bool has_multicast(int device) {
    CUdevice handle = 0;
    int has = 0;
    return env::foreign("NCCL_NVLS_ENABLE") != "0" &&
           cuDeviceGet(&handle, device) == CUDA_SUCCESS &&
           cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, handle) ==
               CUDA_SUCCESS &&
           has != 0;
}

/// The most bytes of a call that is ours. Published times with multicast, of eight GPUs, are ahead
/// of ours from 2M on (README.md); between two GPUs the switch has nothing to add up.
std::size_t most_bytes(const std::array<Outcome, kMostRanks>& all, int ranks) {
    constexpr std::size_t kMostWithMulticast = std::size_t{1} << 20;
    const bool multicast =
        ranks > 2 && std::all_of(all.begin(), all.begin() + ranks,
                                 [](const Outcome& one) { return one.multicast != 0; });
    return all[0].most != 0 ? all[0].most
           : multicast      ? kMostWithMulticast
                            : std::numeric_limits<std::size_t>::max();
}

/// A text that is never freed: reasons are read at the exit.
const char* keep(std::string_view text) {
    return (new std::string(text))->c_str();
}

}  // namespace

Entry::Entry(const Place& place) : place_(place) {
    if (place.ranks == 1) {
        pass("a single rank");
    } else if (place.ranks > kMostRanks) {
        pass("more than 8 ranks");
    }
}

Entry::~Entry() {
    if (joined_ != nullptr) {
        cuEventDestroy(joined_);
    }
}

const char* Entry::why_nccls_here(const CollectiveCall& call) const {
    const CollectiveRow& row = row_of(call.collective);
    if (call.collective != Collective::kAllReduce && only_all_reduces_) {
        return "other collectives, without SYMM_NCCL_COLLECTIVES=all";
    }
    return call.bytes(place_.ranks) > (row.has_root() ? most_rooted_ : most_)
               ? "more bytes than SYMM_NCCL_MOST, or than pays beside NCCL"
               : nullptr;
}

std::optional<cuuint64_t> Entry::capture_of(CUstream stream) const {
    const DeviceScope scope(place_.device);  // the default stream is the current context's
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

void Entry::join(const std::vector<CUstream>& streams) {
    if (streams.size() < 2) {
        return;
    }
    const std::lock_guard lock(mutex_);
    const DeviceScope scope(place_.device);
    if (joined_ == nullptr) {
        check(cuEventCreate(&joined_, CU_EVENT_DISABLE_TIMING), "cuEventCreate()");
    }
    const CUstream first = streams.front();
    const auto rest = std::span(streams).subspan(1);
    for (CUstream other : rest) {
        check(cuEventRecord(joined_, other), "cuEventRecord()");
        check(cuStreamWaitEvent(first, joined_, 0), "cuStreamWaitEvent()");
    }
    check(cuEventRecord(joined_, first), "cuEventRecord()");
    for (CUstream other : rest) {
        check(cuStreamWaitEvent(other, joined_, 0), "cuStreamWaitEvent()");
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
    return std::any_of(work.calls.begin(), work.calls.end(),
                       [&](const CollectiveCall& call) { return call.may_wait(ours_.get()); });
}

Result Entry::call(const Work& work) {
    const std::lock_guard lock(mutex_);
    Result result = kSuccess;
    for (const CollectiveCall& call : work.calls) {
        const auto comm = ours();
        const Result one =
            comm ? launch(comm.get(), call)
                 : failed(kInvalidUsage, call.name() + ": the communicator has ended");
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

Result Entry::finish(const Work& work, Result nccls) {
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
    return work.attach && state_ == State::kNew ? attach() : kSuccess;
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
                failed(kInternalError,
                       fmt::format("the ranks of an ncclComm cannot meet: {}", error.what()));
                return 1;
            }
        };
        symm_comm* comm = nullptr;
        const symm_result result = symm_comm_create_by_allgather(&comm, place_.rank, place_.ranks,
                                                                 gather, &exchange, &options);
        made.reset(comm, symm_comm_destroy);
        const bool asks = result == SYMM_SUCCESS && env::is_set("SYMM_NCCL_MOST");
        Outcome mine{result,
                     exchange.count(),
                     has_multicast(place_.device) ? 1 : 0,
                     asks ? env::bytes("SYMM_NCCL_MOST") : 0,
                     result == SYMM_SUCCESS && env::choice("SYMM_NCCL_COLLECTIVES") == "all",
                     {}};
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
        most_ = most_bytes(all, place_.ranks);
        // Beside NCCL's ring, a root that sends everything to all is slow: not measured beyond two.
        constexpr std::size_t kMostRooted = std::size_t{1} << 20;
        most_rooted_ = all[0].most != 0 || place_.ranks == 2 ? most_ : std::min(most_, kMostRooted);
        only_all_reduces_ = all[0].all == 0;
    } catch (const std::exception& error) {  // the other ranks may wait for this one
        why = error.what();
        met = kInternalError;
    }
    if (!why.empty()) {
        const std::string text = fmt::format("rank {} of an ncclComm of {}: calls are NCCL's: {}",
                                             place_.rank, place_.ranks, why);
        pass(keep(why));
        if (met != kSuccess) {
            return failed(met, text);
        }
        log::write(log::Level::kInfo, text);
        return kSuccess;
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

Result Entry::launch(symm_comm* comm, const CollectiveCall& call) {
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
            result = call.queue(comm);
        }
        if (result != SYMM_SUCCESS) {
            return failed(result_of(result), fmt::format("{} on rank {}: {}", call.name(),
                                                         place_.rank, symm_last_error()));
        }
        if (last != nullptr) {
            check(cuEventRecord(last->after, call.stream), "cuEventRecord()");
            last->stream = call.stream;
        }
        count_ours(call.bytes(place_.ranks));
        return kSuccess;
    } catch (const std::exception& error) {
        return failed(kUnhandledCudaError,
                      fmt::format("{} on rank {}: {}", call.name(), place_.rank, error.what()));
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
            result = failed(kRemoteError, fmt::format("rank {} leaves its ncclComm: {}",
                                                      place_.rank, symm_last_error()));
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
