#pragma once
/// \file
/// The failures of ranks, and which of many failures is the cause.
///
/// When one rank fails, all others fail: they are told, or find it gone, or wait in vain. The
/// user wants to know the first failure. A spawned rank reports its failure to the process that
/// started it, since an exit code says so little.

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace symm {

/// One rank's failure.
struct RankFailure {
    int rank = 0;
    bool usage = false;     ///< The rank threw UsageError.
    bool remote = false;    ///< Another rank's failure caused it.
    bool killed = false;    ///< A signal ended the process.
    std::int64_t when = 0;  ///< Nanoseconds of the steady clock, the same for all processes.
    std::string text;
};

/// A failure at this moment.
RankFailure failure_now(int rank, std::string text);

/// The failure of a rank that ended with this exception.
RankFailure failure_of(int rank, const std::exception_ptr& error);

/// Throws the cause among the failures of a run (at least one), as run_ranks() promises: a killed
/// process first; then the errors that are a rank's own; then those that other ranks caused. Among
/// equals the earliest.
[[noreturn]] void throw_cause(const std::vector<RankFailure>& failures);

/// Reports to the process at the other end of a socket how a rank ended: with a failure, or with
/// none. Does nothing if it cannot.
void report(int socket, const std::optional<RankFailure>& failure) noexcept;

/// What a process has heard from a rank.
enum class Heard { kNothing, kItsEnd, kItsFailure };

/// Receives a report, and a failure into `failure`. Does not wait.
Heard take_report(int socket, RankFailure& failure);

}  // namespace symm
