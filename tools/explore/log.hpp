#pragma once
/// \file
/// The log of an execution.
///
/// 1. The scene's setup gives parts of memory their names, and ends with begin_steps().
/// 2. add() appends a step of a thread. For a plain access it keeps the bytes that are there; those
///    that a plain store stores are taken at the next step, since the store comes after its step.
/// 3. A step is in a function, which called() adds when its thread enters it.
/// 4. fail() ends the execution: it says why, keeps the steps involved, and jumps to the loop over
///    executions. It runs no destructors.
/// 5. report() turns the steps into those of a Report: with names, values and lines of source.

#include <atomic>
#include <csetjmp>
#include <deque>
#include <optional>

#include "tools/explore/explore.hpp"
#include "tools/explore/scene_memory.hpp"

namespace symm::explore {

struct Thread;

/// Whether a global variable, or constant, has this address.
bool is_global(std::uintptr_t address);
/// Whether it is the address of one of the program's `thread_local` variables.
bool is_thread_local(std::uintptr_t address);

/// A function that a thread is in, and those that called it.
struct Frame {
    void* place;
    const Frame* caller;
};

/// An access, or none.
struct Access {
    std::uintptr_t address = 0;  ///< As the model knows it. 0: none.
    std::size_t size = 0;
    void* place = nullptr;                        ///< In the code.
    std::optional<std::memory_order> order = {};  ///< Nothing: a plain access.
};

/// The stores that a load could read, the newest first: their steps (-1: initial) and values.
using Choices = std::vector<std::pair<long, std::uint64_t>>;

inline constexpr char kPlainStore[] = "plain store";

/// A step as the log keeps it; reports turn it into a ReportedStep.
struct LoggedStep {
    const char* what;
    Access access = {};
    std::uint64_t value = 0;
    long from = -1;
    Choices choices = {};    ///< For a load.
    std::string until = {};  ///< As ReportedStep's.
    // The log itself fills in:
    const Thread* thread = nullptr;
    const Frame* frame = nullptr;
    bool by_multicast = false;
    std::size_t bytes = 0;  ///< For a plain access: where its bytes begin in `bytes_`.
};

/// A part of the scene's memory that has a name.
struct NamedMemory {
    std::uintptr_t begin, end;
    std::size_t element;  ///< Bytes.
    Shown shown;
    int rank;
    std::string name;
};

class Log {
public:
    explicit Log(const SceneMemory& memory) : memory_(memory) {}

    void clear();

    void name(NamedMemory memory) { names_.push_back(std::move(memory)); }
    void begin_steps();
    const NamedMemory* memory_at(std::uintptr_t address) const;
    std::string name_of(std::uintptr_t address) const;
    std::string value_of(std::uintptr_t address, const char* bytes, std::size_t size) const;

    /// A function called at `place`, by the one that its thread is in.
    const Frame* called(void* place, const Frame* caller) {
        return &frames_.emplace_back(Frame{place, caller});
    }
    /// Returns the step's number. Fails if there are more than any execution has that ends.
    long add(const Thread& thread, LoggedStep step);
    /// A number that stands for all steps.
    std::uint64_t trace() const { return trace_; }
    /// One for each step, with what it has loaded or stored.
    std::vector<std::uint64_t> values();
    /// Of what was explored so far: more than one if the search has begun again.
    unsigned executions() const { return executions_; }
    /// In this execution a step that has another value fails.
    void expect(std::vector<std::uint64_t> values, unsigned execution) {
        expected_ = std::move(values);
        expected_in_ = execution;
    }
    /// A load that is no step, but counts.
    void add_constant_load(const Thread& thread);
    /// The thread's last two loads, relaxed halves, are one that acquires.
    void acquire_halves(const Thread& thread);
    const LoggedStep& step(long number) const { return log_[static_cast<std::size_t>(number)]; }
    /// The last atomic access of this word; -1: none.
    long last_atomic(std::uintptr_t address, std::size_t size) const;
    /// The last access of this address by this thread; -1: none.
    long last_access(const Thread& thread, std::uintptr_t address) const;
    std::string described(long step) const;

    [[noreturn]] void fail(std::string why, std::vector<long> involved = {});
    /// Fails if memory has changed by an access that the explorer does not see.
    void refuse_unseen();
    /// What fail() jumps to: for sigsetjmp().
    sigjmp_buf& failed() { return failed_; }

    bool is_of_another_rank(std::uintptr_t address, const Thread& thread) const;
    /// Accesses of other ranks' memory, of 16 bytes at most.
    std::uint64_t over_links() const;
    /// Fills in the steps; if the execution has failed, also why. Places take a moment to find.
    void report(Report& report, bool with_places = true);

private:
    void check_endless(const Thread& thread);
    void keep_stored();
    std::uint64_t value_of(const LoggedStep& step) const;
    void refuse_unexpected();

    const SceneMemory& memory_;
    std::vector<NamedMemory> names_;
    std::vector<char> initial_;    ///< The scene's memory after its setup.
    std::vector<LoggedStep> log_;  ///< As large as it was: new memory for each execution costs.
    std::vector<char> bytes_;      ///< Loaded or stored by the plain accesses of the log.
    std::deque<Frame> frames_;
    std::size_t constant_loads_ = 0;
    std::uint64_t trace_ = 0;
    unsigned executions_ = 0;
    std::vector<std::uint64_t> expected_;
    unsigned expected_in_ = 0;
    sigjmp_buf failed_{};
    std::string why_;
    std::vector<long> involved_;
};

}  // namespace symm::explore
