// What the dynamic linker finds here before NCCL: the functions of nccl_functions.inc.

#include <exception>
#include <type_traits>

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
        if constexpr (std::is_void_v<decltype(body())>) {
            body();
            return kSuccess;
        } else {
            return body();
        }
    } catch (const std::exception& error) {
        log::write(log::Level::kError, error.what());
        return kInternalError;
    }
}

/// The entry of a communicator, if this library is in use and knows it.
std::shared_ptr<Entry> known(ncclComm* comm) {
    return is_on() ? known_entry(comm) : nullptr;
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
            return entry->run({{}, false, {call}});
        case Entry::State::kNew:
            break;
        default:
            return pass_on(entry->why_passed(), call, comm);
    }
    if (is_captured(call.stream)) {
        return pass_on("captured before the ranks could attach", call, comm);
    }
    const Result result =
        pass_on("a communicator's first, after which its ranks attach", call, comm);
    if (in_group()) {
        work_in_group(entry).attach = true;
        return result;
    }
    const Result settled = settle(comm, result);
    return settled != kSuccess ? settled : entry->run({{}, true, {}});
}

/// Before NCCL frees a communicator.
Result leave(ncclComm* comm) {
    const auto entry = known(comm);
    return entry != nullptr ? entry->detach(Entry::State::kPassed, "finalized") : kSuccess;
}

/// Ends the calls in flight.
void end(ncclComm* comm, const char* why) {
    if (const auto entry = known(comm)) {
        entry->abort(why);
    }
}

Result first_failure(Result ours, Result nccls) {
    return ours != kSuccess ? ours : nccls;
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
        guarded([] { count_passed("ncclAllReduceConfig: its settings are of NCCL's algorithms"); });
    }
    return nccl::AllReduceConfig(in, out, count, type, op, comm, stream, config);
}

int ncclGroupStart() {
    const Result result = nccl::GroupStart();
    if (is_on() && result == kSuccess) {
        begin_group();
    }
    return result;
}

int ncclGroupEnd() {
    const Result result = nccl::GroupEnd();
    return is_on() ? guarded([&] { return end_group(result); }) : result;
}

int ncclGroupSimulateEnd(void* info) {
    const Result result = nccl::GroupSimulateEnd(info);
    drop_group();
    return result;
}

int ncclCommFinalize(ncclComm* comm) {
    const Result ours = guarded([&] { return leave(comm); });
    return first_failure(ours, nccl::CommFinalize(comm));
}

int ncclCommDestroy(ncclComm* comm) {
    const Result ours = guarded([&] {
        const Result left = leave(comm);
        forget(comm);
        return left;
    });
    return first_failure(ours, nccl::CommDestroy(comm));
}

int ncclCommAbort(ncclComm* comm) {
    guarded([&] {
        end(comm, "aborted");
        forget(comm);
    });
    return nccl::CommAbort(comm);
}

int ncclCommRevoke(ncclComm* comm, int flags) {
    guarded([&] { end(comm, "revoked"); });
    return nccl::CommRevoke(comm, flags);
}

int ncclCommShrink(ncclComm* comm, int* excluded, int count, ncclComm** shrunk, void* config,
                   int flags) {
    guarded([&] {
        if ((flags & kShrinkAbort) != 0) {
            end(comm, "shrunk by NCCL_SHRINK_ABORT");
        }
    });
    return nccl::CommShrink(comm, excluded, count, shrunk, config, flags);
}

// The new communicator has ranks that no attached one had: it begins anew, whatever was known of
// another one at its address.
int ncclCommGrow(ncclComm* comm, int ranks, const void* id, int rank, ncclComm** grown,
                 void* config) {
    const Result result = nccl::CommGrow(comm, ranks, id, rank, grown, config);
    if (result == kSuccess && *grown != comm) {
        guarded([&] { forget(*grown); });
    }
    return result;
}

int ncclCommSuspend(ncclComm* comm, int flags) {
    const Result result = nccl::CommSuspend(comm, flags);
    const auto entry = result == kSuccess ? known(comm) : nullptr;
    if (entry == nullptr || entry->state() == Entry::State::kPassed) {
        return result;
    }
    return guarded([&] { return entry->detach(Entry::State::kSuspended, "suspended"); });
}

int ncclCommResume(ncclComm* comm) {
    const Result result = nccl::CommResume(comm);
    if (const auto entry = result == kSuccess ? known(comm) : nullptr) {
        entry->resume();
    }
    return result;
}

int ncclCommGetAsyncError(ncclComm* comm, int* error) {
    const Result result = nccl::CommGetAsyncError(comm, error);
    return guarded([&] {
        const auto entry = known(comm);
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
            register_in_group(entry, window, memory, bytes);
            return result;
        }
        const Result settled = settle(comm, result);
        if (settled != kSuccess || *window == nullptr) {
            return settled;
        }
        return entry->run({{{*window, memory, bytes}}, false, {}});
    });
}

int ncclCommWindowDeregister(ncclComm* comm, ncclWindow_vidmem* window) {
    guarded([&] {
        if (const auto entry = known(comm)) {
            entry->deregister(window);
        }
    });
    return nccl::CommWindowDeregister(comm, window);
}
