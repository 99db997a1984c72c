// What the dynamic linker finds here before NCCL: the functions of nccl_functions.inc.

#include <exception>

#include "common/sys/environment.hpp"
#include "common/sys/log.hpp"
#include "labs/06_allreduce/drop_in/group.hpp"
#include "labs/06_allreduce/drop_in/side_table.hpp"
#include "labs/06_allreduce/drop_in/stats.hpp"

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
        log::write(log::Level::kError, error.what());
        return kInternalError;
    }
}

/// Counts a call that NCCL gets, and makes it.
Result pass_on(const char* why, const AllReduceCall& call, ncclComm* comm) {
    count_passed(why);
    return nccl::AllReduce(call.in, call.out, call.count, call.type, call.op, comm, call.stream);
}

Result all_reduce(const AllReduceCall& call, ncclComm* comm) {
    const auto entry = entry_of(comm);
    if (entry == nullptr) {
        return pass_on("of no communicator that NCCL knows", call, comm);
    }
    if (const char* why = call.why_nccls()) {
        return pass_on(why, call, comm);
    }
    switch (entry->state()) {
        case Entry::State::kOurs:
            if (in_group()) {
                work_in_group(entry).calls.push_back(call);
                return kSuccess;
            }
            return entry->run({{}, false, {call}}, kSuccess);
        case Entry::State::kNew:
            break;
        default:
            return pass_on(entry->why_passed(), call, comm);
    }
    if (entry->is_captured(call.stream)) {
        return pass_on("captured before the ranks could attach", call, comm);
    }
    const Result result =
        pass_on("a communicator's first, after which its ranks attach", call, comm);
    if (in_group()) {
        work_in_group(entry).attach = true;
        return result;
    }
    return entry->run({{}, true, {}}, result);
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
#define SYMM_NCCL_CALLED(name, parameters, arguments)
#include "labs/06_allreduce/drop_in/nccl_functions.inc"
#undef SYMM_NCCL_CALLED
#undef SYMM_NCCL_FUNCTION

int ncclAllReduce(const void* in, void* out, size_t count, int type, int op, ncclComm* comm,
                  CUstream stream) {
    if (!is_on()) {
        return nccl::AllReduce(in, out, count, type, op, comm, stream);
    }
    return guarded([&] { return all_reduce({in, out, count, type, op, stream}, comm); });
}

int ncclAllReduceConfig(const void* in, void* out, size_t count, int type, int op, ncclComm* comm,
                        CUstream stream, const void* config) {
    if (is_on()) {
        guarded([] {
            count_passed("ncclAllReduceConfig: its settings are of NCCL's algorithms");
            return kSuccess;
        });
    }
    return nccl::AllReduceConfig(in, out, count, type, op, comm, stream, config);
}

int ncclGroupStart() {
    const Result result = nccl::GroupStart();
    if (result == kSuccess) {
        begin_group();
    }
    return result;
}

int ncclGroupEnd() {
    const Result result = nccl::GroupEnd();
    return guarded([&] { return end_group(result); });
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
        return entry->run({{{window, memory, bytes}}, false, {}}, result);
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
