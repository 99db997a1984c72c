#pragma once
/// \file
/// Errors as one line of text for the user.

#include <exception>
#include <string>
#include <string_view>

namespace symm {

/// The text with its control characters written as `\n`, `\t` or `\x1b`: it may quote an argument
/// that has some.
std::string one_line(std::string_view text);

/// The text of an exception, in one line. If a limit of the system is the cause (descriptors,
/// threads, memory), it names the limit and how to raise it.
std::string error_text(const std::exception& error);

/// Prints `error: ` and the text to stderr. If that cannot be written, nothing else happens.
void report_error(std::string_view text) noexcept;

}  // namespace symm
