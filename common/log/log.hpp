#pragma once
/// \file
/// The log, on stderr. `SYMM_DEBUG=error|warn|info|debug|trace` sets its level (default warn).

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace symm::log {

enum class Level { kDebug, kInfo, kWarn, kError };

/// One line, as it is. Never throws: what cannot be logged is lost.
void write(Level level, std::string_view text) noexcept;

/// Whether an error has been logged: a destructor, say, could not give something back and cannot
/// throw. A program that has logged one does not end with 0.
bool told_an_error() noexcept;

/// Lines in fmt's format. Not for places where forming the text may throw.
template <class... Arguments>
void debug(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    write(Level::kDebug, fmt::format(text, std::forward<Arguments>(arguments)...));
}
template <class... Arguments>
void info(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    write(Level::kInfo, fmt::format(text, std::forward<Arguments>(arguments)...));
}
template <class... Arguments>
void warn(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    write(Level::kWarn, fmt::format(text, std::forward<Arguments>(arguments)...));
}
template <class... Arguments>
void error(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    write(Level::kError, fmt::format(text, std::forward<Arguments>(arguments)...));
}

}  // namespace symm::log
