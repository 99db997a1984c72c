#pragma once
/// \file
/// The waits of an execution: all ways in which one may end, and the one that is taken.
///
/// 1. A thread calls await() with a poll, and is suspended. A load that may return several values
///    is a wait, too, which ends at once.
/// 2. moves_of() tries the poll with all combinations of stores that its loads may read(), and
///    undoes what it does. The moves of the wait are those that end it, with the stores read.
/// 3. make() takes one: the poll is called once more, and its loads read these stores.
/// 4. A loop that polls without a Waiter comes back to a state of its thread: then it spins.
/// 5. Where no thread can go on, fail_deadlocked() says what each of them polls.
/// 6. For recordings, polls are also tried with assumed values: which would end the wait?

#include <optional>
#include <set>

#include "tools/explore/schedule.hpp"

namespace symm::explore {

/// What a load reads. The last two are for the log.
struct Read {
    StoreRecord& store;
    std::uint64_t value;  ///< The store's, or an assumed one.
    Choices choices = {};
    std::string until = {};
};

class Waits {
public:
    Waits(const Options& options, SceneMemory& scene, Memory& memory, Search& search, Log& log)
        : options_(options), scene_(scene), memory_(memory), search_(search), log_(log) {}

    void clear();
    /// The moves with which this thread's wait may end now.
    const std::vector<ThreadMove>& moves_of(Thread& thread);
    /// One of them. The thread is then ready, or polls again.
    void make(Thread& thread, const ThreadMove& move);
    [[noreturn]] void fail_deadlocked(std::span<Thread> threads);

    /// Whether a thread that spins could read something newer.
    bool is_redundant(std::span<const Thread> threads);

    // For a thread that runs.
    simt::Awaited await(Thread& thread, const std::function<bool()>& poll,
                        const std::uint32_t* gave_up);
    /// What a thread does next depends on this alone, if the memory that it reads stays the same.
    /// `frame`: that of the instrumentation's function.
    static std::vector<std::uint64_t> state_of(const Thread& thread, const void* frame);
    /// Called before a load, with the thread's state: suspends a thread that polls.
    void spin_if_known(Thread& thread, const std::vector<std::uint64_t>& state,
                       std::size_t location);
    /// Called after it.
    static void add_idle_load(Thread& thread, std::vector<std::uint64_t> state,
                              std::size_t location, std::uint64_t value);

    // For a thread whose poll is called.
    bool is_trying() const { return trying_; }
    /// It has made a plain store, perhaps of its own variables.
    bool has_stored() const { return !overwritten_.empty(); }
    bool is_polling() const { return trying_ || making_ != nullptr; }
    /// Fails if it is.
    void refuse_in_poll(const Thread& thread, const char* what);
    /// The store whose turn it is, or the one that was chosen. A store has at most one update; a
    /// swap that fails, since it expected another value, is none.
    Read read(Thread& thread, std::size_t location, bool for_update = false,
              std::optional<std::uint64_t> expected = {});
    /// Whether it is a variable of the poll that is called.
    bool is_of_poll(std::uintptr_t address) const;
    /// Called before a plain store while the poll is tried: these bytes will be restored.
    void keep(void* address, std::size_t size);

private:
    /// A value that a load of a poll shall return.
    struct AssumedLoad {
        const Location* word;
        std::uint64_t value;
    };
    struct Digit {
        std::size_t taken, count;
    };

    void add_moves(Thread& thread);
    bool call_poll(Thread& thread);
    bool try_poll(Thread& thread);
    bool ends_with(Thread& thread, const std::vector<AssumedLoad>& loads);
    std::string condition(Thread& thread, std::vector<AssumedLoad> loads, std::size_t i);
    std::vector<AssumedLoad> loads_of(const PendingWait& wait,
                                      const std::vector<std::uint64_t>& reads);
    std::uint64_t unit_of(const Location& word) const;
    void log_endless(Thread& thread);

    const Options& options_;
    SceneMemory& scene_;
    Memory& memory_;
    Search& search_;
    Log& log_;
    const ThreadMove* making_ = nullptr;
    bool trying_ = false;
    std::vector<std::uint64_t> read_;  ///< In this call: the ids of the stores.
    std::vector<Digit> digits_;        ///< For each load, which of how many stores is tried.
    const std::vector<AssumedLoad>* assumed_ = nullptr;  ///< Null: loads return what is stored.
    std::vector<std::string> conditions_;                ///< LoggedStep::until of each load.
    const void* poll_frame_ = nullptr;  ///< The poll's own variables lie below, and end with it.
    // What a try changes:
    std::vector<std::pair<char*, std::vector<char>>> overwritten_;
    ThreadView before_;
    bool any_spins_ = false;       ///< In this execution.
    std::set<std::size_t> spins_;  ///< Loads after which a thread polls in vain: hashes.
};

}  // namespace symm::explore
