#pragma once
/// \file
/// How a program of the course tells a check its results: over a socket, one line each, after the
/// code of the learner has returned. The check believes neither a file nor what is printed.
///
/// - SYMM_COURSE_RESULTS is the socket's number. Without it nothing is told.
/// - Its first kKeyBytes bytes are a key that the check has drawn. They are read before any other
///   constructor runs, and each line begins with them. So code without the key cannot add a line.
/// - Neither a forked process nor a program that is started here tells anything.

#include <string_view>

namespace symm::course {

inline constexpr int kKeyBytes = 32;

/// Announces a result. All are announced before the first one is told.
void announce(std::string_view name);
/// Tells an announced result, once.
void tell(std::string_view name, bool right);
/// Tells more about the next result: a line of JSON.
void describe(std::string_view json);

}  // namespace symm::course
