#pragma once
/// \file
/// What went wrong on a rank, and which of many is the cause.
///
/// One rank that fails makes all the others fail: they are told, or find it gone, or wait in vain.
/// The person wants the first. A copy writes its failure into a file of the run's private
/// directory, since an exit code says so little; the process that started it reads them all.

#include <sys/types.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace symm {

/// One rank's failure.
struct RankFailure {
    int rank = 0;
    bool usage = false;     ///< The rank threw UsageError.
    bool told = false;      ///< It is the consequence of another rank's.
    bool killed = false;    ///< A signal ended the process.
    std::int64_t when = 0;  ///< Nanoseconds of the steady clock, the same for all processes.
    std::string text;
};

/// What an exception of a rank amounts to.
RankFailure failure_of(int rank, const std::exception_ptr& error);

/// The cause among the failures of a run (not empty): a killed process before all, a rank's own
/// error before what it was told, the earlier before the later.
const RankFailure& cause_of(const std::vector<RankFailure>& failures);

/// Throws the cause as run_ranks() promises.
[[noreturn]] void throw_cause(const std::vector<RankFailure>& failures);

/// Leaves a failure where the process that started this one finds it; gives up silently.
void leave_note(const std::filesystem::path& directory, const RankFailure& failure) noexcept;

/// The failure a rank has left, if it has.
std::optional<RankFailure> find_note(const std::filesystem::path& directory, int rank);

}  // namespace symm
