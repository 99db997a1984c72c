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

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/cuda/gpu.hpp"
#include "common/pattern/pattern.hpp"
#include "common/sys/deadline.hpp"
#include "labs/02_access/kernels.hpp"
#include "labs/02_access/peer_matrix.hpp"
#include "labs/02_access/shared_buffer.hpp"

namespace symm {

/// What a kernel does, and why it may not.
enum class Forbidden {
    kLoadNeverAllowed,   ///< The memory is mapped; the device was never given access.
    kStoreNeverAllowed,  ///< The same.
    kStoreReadOnly,      ///< The device may read, and writes.
    kLoadTakenAway,      ///< The device could, and cannot any more.
    kStoreTakenAway,     ///< The same.
};

/// All of them.
std::vector<Forbidden> all_forbidden();
/// `load-never-allowed`, `store-never-allowed`, `store-read-only`, `load-taken-away`,
/// `store-taken-away`.
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

/// The name of the hidden option: `program --forbidden-child load-taken-away`.
inline constexpr std::string_view kForbiddenOption = "--forbidden-child";

/// Starts `program` with that option and reads its report. The driver in use here is the child's,
/// too. Throws std::system_error where it cannot be started, std::runtime_error where it does not
/// end before the deadline or reports nothing.
ForbiddenReport show_forbidden(const std::string& program, Forbidden kind,
                               Deadline deadline = Deadline::standard());

/// A buffer of this process that stands while children lose their contexts. Move-only.
class Bystander {
public:
    /// `bytes` (a multiple of 4, not 0) of `owner`, filled by it, for all that the matrix calls its
    /// users. `gpus[i]` is device i; they must outlive this. Throws CudaError.
    Bystander(std::span<const Gpu> gpus, const PeerMatrix& matrix, int owner, std::size_t bytes);

    /// Reads all of it on every user: a line for each one that sees something else, none where the
    /// memory and the users' contexts are as they were. Throws CudaError.
    std::vector<std::string> complaints() const;
    const SharedBuffer& buffer() const { return buffer_; }

private:
    std::span<const Gpu> gpus_;
    SharedBuffer buffer_;
    pattern::Range range_;
};

/// The child's part: commits the deed on the last device that may use memory of device 0, and
/// prints the report on stdout. Returns the exit code.
int commit_forbidden(Forbidden kind);

}  // namespace symm
