#pragma once
/// \file
/// The text of ncclGetLastError: that of the last error, ours or NCCL's.

#include <string_view>

#include "symm/nccl/nccl.hpp"

namespace symm::drop_in {

/// Logs why a function is about to return `result`, and keeps it. Returns `result`. Never throws.
Result failed(Result result, std::string_view why) noexcept;

/// Valid until this thread's next call. NCCL's own text, unless the last error was ours.
const char* last_error(ncclComm* comm);

}  // namespace symm::drop_in
