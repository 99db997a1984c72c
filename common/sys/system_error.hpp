#pragma once
/// \file
/// Errors of system calls as exceptions. error_text.hpp says what to do about them.

#include <fmt/core.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace symm {

/// Throws std::system_error for the call.
[[noreturn]] inline void throw_system_error(int error, const std::string& call) {
    throw std::system_error(error, std::generic_category(), call);
}

/// Throws std::system_error with `errno` for the call.
template <class... Arguments>
[[noreturn]] void throw_errno(fmt::format_string<Arguments...> call, Arguments&&... arguments) {
    const int error = errno;
    throw_system_error(error, fmt::format(call, std::forward<Arguments>(arguments)...));
}

}  // namespace symm
