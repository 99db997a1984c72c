#pragma once
/// \file
/// What a kernel does that has no access: shown in a child process, since nothing else survives it.
///
/// A forbidden load or store is no exception that can be caught. The GPU stops the kernel, and the
/// driver declares the whole context lost: every later call of the process on that device answers
/// CUDA_ERROR_ILLEGAL_ADDRESS (700), until the process ends. The call that reports it first is not
/// the launch, which only queues, but the next that waits. (Besides, the kernel log has an `Xid
/// 31`.)
///
/// The child is this very program, started again with a hidden option; the parent reads what it
/// saw.

#include <string>
#include <string_view>
#include <vector>

#include "common/sys/deadline.hpp"

namespace symm {

/// A way of not having access.
enum class Forbidden {
    kNeverAllowed,  ///< The memory is mapped; the device was never given access.
    kReadOnly,      ///< The device may read, and writes.
    kTakenAway,     ///< The device could, and cannot any more.
};

/// All of them.
std::vector<Forbidden> all_forbidden();
/// `never-allowed`, `read-only`, `taken-away`.
std::string_view name_of(Forbidden kind);
/// The other way round. Throws UsageError with the names there are.
Forbidden forbidden_from(std::string_view name);

/// What the child met.
struct ForbiddenReport {
    std::string
        first;         ///< The error of the call that waited for the kernel, as a learner meets it.
    std::string next;  ///< What a harmless call answered afterwards.
    std::string child;  ///< How the child ended.
    /// The kernel was stopped with CUDA_ERROR_ILLEGAL_ADDRESS and the context is lost.
    bool as_expected() const;
};

/// The name of the hidden option: `program --forbidden-child never-allowed`.
inline constexpr std::string_view kForbiddenOption = "--forbidden-child";

/// Starts `program` with that option and reads its report. The driver in use here is the child's,
/// too. Throws std::system_error where it cannot be started, std::runtime_error where it does not
/// end before the deadline or reports nothing.
ForbiddenReport show_forbidden(const std::string& program, Forbidden kind,
                               Deadline deadline = Deadline::standard());

/// The child's part: commits the deed on the last device that may use memory of device 0, and
/// prints the report on stdout. Returns the exit code.
int commit_forbidden(Forbidden kind);

}  // namespace symm
