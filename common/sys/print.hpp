#pragma once
/// \file
/// Writes text to stdout and stderr without waiting for ever: a pipe's reader may have stopped.

#include <string>
#include <string_view>

namespace symm {

/// Writes all of `text`. False, with errno set, if that failed: ETIMEDOUT if a pipe stayed
/// full for SYMM_TIMEOUT, that of stderr for half of it; from then on all calls for this descriptor
/// fail at once. Text of at most PIPE_BUF bytes is not mixed with other text. Needs no heap: memory
/// may be what has run out.
bool write_text(int descriptor, std::string_view text) noexcept;

/// The same for lines: each begins with `prefix`, and ends with a newline.
bool print_lines(int descriptor, std::string_view prefix, std::string_view text);

/// For the start of a program: from now on a file that grows over `ulimit -f` is an error of the
/// write, not a signal that ends the program without a word. A library leaves this to its program.
void ignore_file_size_signal();

/// The same; and stdio writes to stdout by write_text(), so that no program waits for ever for a
/// reader.
void limit_output();

/// `cannot write to stdout: No space left on device`, from the `errno` of write_text().
std::string output_error(int error);

/// For the end of a program: most output is in stdio's buffer until now, so an error such as a full
/// disk often shows only here. Throws std::runtime_error.
void require_written_output();

}  // namespace symm
