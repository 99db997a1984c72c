// What the dynamic linker finds here before NCCL: the functions that the drop-in has to see, and
// ncclGetLastError.

#include <exception>

#include "common/sys/environment.hpp"
#include "common/sys/log.hpp"
#include "symm/nccl/group.hpp"
#include "symm/nccl/last_error.hpp"
#include "symm/nccl/side_table.hpp"
#include "symm/nccl/stats.hpp"

using namespace symm;
using namespace symm::drop_in;

namespace {

/// SYMM_NCCL=0 leaves everything to NCCL.
bool is_on() noexcept {
    static const bool on = []() noexcept {
        try {
            env::number("SYMM_NCCL_STATS");  // to throw here rather than in a call
            return env::number("SYMM_NCCL") == 1;
        } catch (const std::exception& error) {
            log::write(log::Level::kError, error.what());
            return false;
        }
    }();
    return on;
}

/// Runs a function's body. No exception passes.
template <class Body>
Result guarded(const Body& body) noexcept {
    try {
        return body();
    } catch (const std::exception& error) {
        return failed(kInternalError, error.what());
    }
}

/// One of NCCL's calls that go into a stream. In a group that has calls of ours, too, those wait
/// for the stream, and it waits for them.
template <class Call>
Result queue_nccls(ncclComm* comm, CUstream stream, const Call& call) {
    if (!in_group()) {
        return call();
    }
    const Result result = note_in_group(call());
    return guarded([&] {
        const auto entry = known_entry(comm);
        const bool mixes = entry != nullptr && entry->state() == Entry::State::kOurs;
        const Result used = mixes && result == kSuccess ? use_in_group(entry, stream) : kSuccess;
        return used != kSuccess ? used : result;
    });
}

/// Counts a call that NCCL gets, and makes it.
Result pass_on(const char* why, const CollectiveCall& call, ncclComm* comm) {
    count_passed(why);
    return queue_nccls(comm, call.stream, [&] { return call.queue_nccls(comm); });
}

/// The first AllReduce lets a communicator's ranks attach.
Result make_call(const CollectiveCall& call, ncclComm* comm) {
    const auto entry = entry_of(comm);
    if (entry == nullptr) {
        return pass_on("of no communicator that NCCL knows", call, comm);
    }
    if (const char* why = call.why_always_nccls()) {
        return pass_on(why, call, comm);
    }
    switch (entry->state()) {
        case Entry::State::kOurs:
            if (const char* why = entry->why_nccls_here(call)) {
                return pass_on(why, call, comm);
            }
            if (in_group()) {
                const Result used = use_in_group(entry, call.stream);
                if (used == kSuccess) {
                    work_in_group(entry).calls.push_back(call);
                }
                return used;
            }
            return entry->call({.calls = {call}});
        case Entry::State::kNew:
            break;
        default:
            return pass_on(entry->why_passed(), call, comm);
    }
    if (call.collective != Collective::kAllReduce) {
        return pass_on("before the first AllReduce, after which the ranks attach", call, comm);
    }
    if (entry->capture_of(call.stream)) {
        return pass_on("captured before the ranks could attach", call, comm);
    }
    const Result result =
        pass_on("a communicator's first, after which its ranks attach", call, comm);
    if (in_group()) {
        work_in_group(entry).attach = true;
        return result;
    }
    return entry->finish({.attach = true}, result);
}

Result call(const CollectiveCall& call, ncclComm* comm) {
    return is_on() ? guarded([&] { return make_call(call, comm); }) : call.queue_nccls(comm);
}

/// Ends the calls in flight.
void end(const std::shared_ptr<Entry>& entry, const char* why) {
    guarded([&] {
        if (entry != nullptr) {
            entry->abort(why);
        }
        return kSuccess;
    });
}

/// Waits for our calls, then makes NCCL finalize or free the communicator, unless ncclCommAbort has
/// freed it meanwhile.
Result leave(ncclComm* comm, Result (*nccls)(ncclComm*)) {
    const auto entry = known_entry(comm);
    const Result ours = guarded([&] {
        return entry != nullptr ? entry->detach(Entry::State::kPassed, "finalized") : kSuccess;
    });
    if (entry != forget(comm)) {
        return kInternalError;
    }
    const Result theirs = nccls(comm);
    return ours != kSuccess ? ours : theirs;
}

}  // namespace

#define SYMM_NCCL_FUNCTION(name, parameters, arguments) extern "C" int nccl##name parameters;
#include "symm/nccl/nccl_functions.inc"
extern "C" const char* ncclGetLastError(ncclComm* comm);

int ncclAllReduce(const void* in, void* out, size_t count, int type, int op, ncclComm* comm,
                  CUstream stream) {
    return call({Collective::kAllReduce, in, out, count, type, op, 0, stream}, comm);
}
int ncclReduceScatter(const void* in, void* out, size_t count, int type, int op, ncclComm* comm,
                      CUstream stream) {
    return call({Collective::kReduceScatter, in, out, count, type, op, 0, stream}, comm);
}
int ncclAllGather(const void* in, void* out, size_t count, int type, ncclComm* comm,
                  CUstream stream) {
    return call({Collective::kAllGather, in, out, count, type, SYMM_SUM, 0, stream}, comm);
}
int ncclBroadcast(const void* in, void* out, size_t count, int type, int root, ncclComm* comm,
                  CUstream stream) {
    return call({Collective::kBroadcast, in, out, count, type, SYMM_SUM, root, stream}, comm);
}
int ncclBcast(void* buffer, size_t count, int type, int root, ncclComm* comm, CUstream stream) {
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
int ncclReduce(const void* in, void* out, size_t count, int type, int op, int root, ncclComm* comm,
               CUstream stream) {
    return call({Collective::kReduce, in, out, count, type, op, root, stream}, comm);
}

int ncclAllReduceConfig(const void* in, void* out, size_t count, int type, int op, ncclComm* comm,
                        CUstream stream, const void* config) {
    if (is_on()) {
        guarded([] {
            count_passed("ncclAllReduceConfig: its settings are of NCCL's algorithms");
            return kSuccess;
        });
    }
    return queue_nccls(comm, stream, [&] {
        return nccl::AllReduceConfig(in, out, count, type, op, comm, stream, config);
    });
}

#define SYMM_NCCL_QUEUED(name, parameters, arguments)                           \
    int nccl##name parameters {                                                 \
        return queue_nccls(comm, stream, [&] { return nccl::name arguments; }); \
    }
#include "symm/nccl/nccl_functions.inc"

const char* ncclGetLastError(ncclComm* comm) {
    return last_error(comm);
}

int ncclGroupStart() {
    const Result result = nccl::GroupStart();
    if (result == kSuccess) {
        begin_group();
    }
    return result;
}

int ncclGroupEnd() {
    return guarded([] { return end_group(); });
}

int ncclGroupSimulateEnd(void* info) {
    const Result result = nccl::GroupSimulateEnd(info);
    drop_group();
    return result;
}

int ncclCommFinalize(ncclComm* comm) {
    return leave(comm, nccl::CommFinalize);
}

int ncclCommDestroy(ncclComm* comm) {
    return leave(comm, nccl::CommDestroy);
}

int ncclCommAbort(ncclComm* comm) {
    end(forget(comm), "aborted");
    return nccl::CommAbort(comm);
}

int ncclCommRevoke(ncclComm* comm, int flags) {
    end(known_entry(comm), "revoked");
    return nccl::CommRevoke(comm, flags);
}

int ncclCommShrink(ncclComm* comm, int* excluded, int count, ncclComm** shrunk, void* config,
                   int flags) {
    if ((flags & kShrinkAbort) != 0) {
        end(known_entry(comm), "shrunk by NCCL_SHRINK_ABORT");
    }
    return nccl::CommShrink(comm, excluded, count, shrunk, config, flags);
}

int ncclCommSuspend(ncclComm* comm, int flags) {
    const Result result = nccl::CommSuspend(comm, flags);
    const auto entry = result == kSuccess ? known_entry(comm) : nullptr;
    if (entry == nullptr || entry->state() == Entry::State::kPassed) {
        return result;
    }
    return guarded([&] { return entry->detach(Entry::State::kSuspended, "suspended"); });
}

int ncclCommResume(ncclComm* comm) {
    const Result result = nccl::CommResume(comm);
    if (const auto entry = result == kSuccess ? known_entry(comm) : nullptr) {
        entry->resume();
    }
    return result;
}

int ncclCommGetAsyncError(ncclComm* comm, int* error) {
    const Result result = nccl::CommGetAsyncError(comm, error);
    return guarded([&] {
        const auto entry = known_entry(comm);
        if (result == kSuccess && *error == kSuccess && entry != nullptr && entry->has_failed()) {
            *error = kRemoteError;
        }
        return result;
    });
}

int ncclCommWindowRegister(ncclComm* comm, void* memory, size_t bytes, ncclWindow_vidmem** window,
                           int flags) {
    const Result result = nccl::CommWindowRegister(comm, memory, bytes, window, flags);
    if (!is_on() || (flags & kSymmetricWindow) == 0 ||
        (result != kSuccess && result != kInProgress)) {
        return result;
    }
    return guarded([&] {
        const auto entry = entry_of(comm);
        if (entry == nullptr) {
            return result;
        }
        if (in_group()) {
            work_in_group(entry).registrations.push_back({window, memory, bytes});
            return result;
        }
        return entry->finish({.registrations = {{window, memory, bytes}}}, result);
    });
}

int ncclCommWindowDeregister(ncclComm* comm, ncclWindow_vidmem* window) {
    guarded([&] {
        if (const auto entry = known_entry(comm)) {
            entry->deregister(window);
        }
        return kSuccess;
    });
    return nccl::CommWindowDeregister(comm, window);
}
