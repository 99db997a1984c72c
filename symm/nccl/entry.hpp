#pragma once
/// \file
/// What this library knows about one of the program's ncclComms, which stays NCCL's own.
///
/// An ncclComm begins as kNew: its calls go to NCCL. After its first AllReduce that could be ours,
/// outside of a capture, the ranks attach: they make a communicator of symm.h, or agree that they
/// cannot. From then on all ranks take such calls (kOurs), or none does (kPassed). A suspended one
/// begins anew when it is resumed.

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "symm/c/symm.h"
#include "symm/nccl/collective_call.hpp"
#include "symm/nccl/exchange.hpp"
#include "symm/nccl/nccl.hpp"

namespace symm::drop_in {

/// A call of ncclCommWindowRegister.
struct Registration {
    ncclWindow_vidmem** handle;  ///< NCCL stores it, in a group only at the end.
    void* memory;
    std::size_t bytes;
};

/// A window that the program has registered with NCCL.
struct RegisteredWindow {
    ncclWindow_vidmem* handle;
    void* memory;
    std::size_t bytes;
    void* ours = nullptr;  ///< The same for the communicator of symm.h, once that has it.
};

/// Things to do for one communicator at the end of a group, or after a call.
struct Work {
    std::vector<CollectiveCall> calls;        ///< Ours, which come before NCCL's part of the group.
    std::vector<CUstream> streams;            ///< That the group's calls use, NCCL's too.
    std::vector<Registration> registrations;  ///< These come after NCCL's part, and then attaching.
    bool attach = false;
};

/// Used by one thread at a time, apart from abort(), has_failed() and state().
class Entry {
public:
    enum class State { kNew, kOurs, kPassed, kSuspended };

    explicit Entry(const Place& place);
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry();

    int device() const { return place_.device; }
    State state() const { return state_; }
    /// Why its calls are NCCL's. Valid for ever.
    const char* why_passed() const { return why_passed_; }
    /// Why a call is NCCL's although its communicator's AllReduces are ours, or null: the same on
    /// all ranks.
    const char* why_nccls_here(const CollectiveCall& call) const;
    /// The number of the capture that the stream is in, if it is in one. Throws std::runtime_error.
    std::optional<cuuint64_t> capture_of(CUstream stream) const;
    /// Makes each stream wait for what the others have to do so far, as NCCL does before a group
    /// and after it. Throws std::runtime_error.
    void join(const std::vector<CUstream>& streams);

    /// Whether call() may wait for other ranks on the host: with other communicators of the same
    /// thread, each then needs a thread of its own.
    bool may_wait(const Work& work);
    /// Makes the calls. Returns the first failure.
    Result call(const Work& work);
    /// After call() in a thread of its own, and before it in the program's, whose other streams are
    /// the same: waits for the work in CU_STREAM_PER_THREAD, if the calls use it. Throws
    /// std::runtime_error.
    void finish_thread(const Work& work) const;
    /// The rest of the work, after NCCL's part of it: waits until NCCL has done that, if `nccls` is
    /// kInProgress, and does nothing if it has failed. Collective if there are registrations or
    /// ranks to attach. Returns the first failure. Throws std::runtime_error.
    Result finish(const Work& work, Result nccls);
    /// Whether finish() has anything to do.
    static bool must_finish(const Work& work) {
        return work.attach || !work.registrations.empty() || work.streams.size() > 1;
    }
    /// Forgets a window of the program's. Not collective, as in NCCL.
    void deregister(ncclWindow_vidmem* window);

    /// Whether a call of ours has no result. From any thread.
    [[nodiscard]] bool has_failed();
    /// Ends all waits. From any thread, before NCCL's own abort. Its calls are then NCCL's.
    void abort(const char* why);
    /// Ends the attachment, after the calls in flight, however long these take. Returns
    /// kRemoteError if one has no result.
    Result detach(State next, const char* why);
    void resume();

private:
    /// The last call in a capture, which the next one there has to follow.
    struct Captured {
        cuuint64_t id;
        CUstream stream;
        CUevent after;
    };

    std::shared_ptr<symm_comm> ours();
    Result attach();
    void pass(const char* why);
    Result leave(State next, const char* why);
    void add(symm_comm* comm, RegisteredWindow& window);
    Result launch(symm_comm* comm, const CollectiveCall& call);
    Captured& captured(cuuint64_t id);

    const Place place_;
    std::atomic<State> state_ = State::kNew;
    std::atomic<const char*> why_passed_ = "";
    std::atomic<bool> aborted_ = false;
    std::timed_mutex mutex_;  ///< Of everything below, for a whole call.
    std::mutex ours_mutex_;   ///< Of the pointer alone.
    std::shared_ptr<symm_comm> ours_;
    std::vector<RegisteredWindow> windows_;
    std::deque<Captured> captures_;
    CUevent joined_ = nullptr;  ///< Of join().
    // Rank 0's settings.
    std::size_t most_ = 0;          ///< Bytes of a call that is ours.
    std::size_t most_rooted_ = 0;   ///< Of one that has a root.
    bool only_all_reduces_ = true;  ///< Other collectives are NCCL's.
};

}  // namespace symm::drop_in
