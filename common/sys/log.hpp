#pragma once
/// \file
/// The log, on stderr. `SYMM_DEBUG=error|warn|info|debug` sets its level (default warn).

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace symm::log {

enum class Level { kDebug, kInfo, kWarn, kError };

/// Whether lines of this level are written: asked before a line is made that costs time.
bool enabled(Level level) noexcept;

/// Logs `text` as one line. Never throws: a line that cannot be written is lost.
void write(Level level, std::string_view text) noexcept;

/// Whether an error has been logged, for example by a destructor, which cannot throw. A program
/// that has logged an error does not end with exit status 0.
bool told_an_error() noexcept;

/// Like write(), with a format string of fmt. Formatting may throw: not for code that must not.
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
