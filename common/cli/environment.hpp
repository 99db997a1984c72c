#pragma once
/// \file
/// The environment is usage as well: what it says is read before anything runs on it.

namespace symm {

/// Throws UsageError for the first SYMM_* variable of docs/ENVIRONMENT.md that holds nonsense, saying what
/// it may hold. One that is empty is as one that is not set.
void require_environment();

}  // namespace symm
