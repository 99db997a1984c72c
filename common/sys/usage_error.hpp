#pragma once
/// \file
/// Bad usage as an exception, and the exit codes of programs. Not in cli.hpp, which includes CLI11.

#include <fmt/core.h>

#include <stdexcept>
#include <utility>

namespace symm {

/// The program was asked for something it cannot do; the text says what to type instead. Exit
/// code 2.
class UsageError : public std::runtime_error {
public:
    using runtime_error::runtime_error;
    template <class... Arguments>
    requires(sizeof...(Arguments) > 0) explicit UsageError(fmt::format_string<Arguments...> text,
                                                           Arguments&&... arguments)
        : runtime_error(fmt::format(text, std::forward<Arguments>(arguments)...)) {}
};

/// Exit codes of all programs: checked and right, wrong or failed, bad usage.
inline constexpr int kExitRight = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

}  // namespace symm
