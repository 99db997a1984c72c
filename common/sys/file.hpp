#pragma once
/// \file
/// Files that a user names, by an option or a variable: small regular ones. Reading a FIFO or
/// /dev/full would never end.

#include <cstddef>
#include <string>
#include <string_view>

namespace symm {

/// The most bytes of a file that is read.
inline constexpr std::size_t kMostFileBytes = std::size_t{4} << 20;

/// The text of the file. `origin` says who named it, as in `SYMM_TUNING=table.txt`. Throws
/// UsageError if it is not a regular file, cannot be read, or has more than kMostFileBytes.
std::string read_file(const std::string& path, std::string_view origin);

/// Throws UsageError unless `path` is a regular file that can be written, or can be made: its
/// folder exists and can be changed. For a check before long work.
void require_output_file(const std::string& path, std::string_view origin);

/// Writes the text to the file, in place of what it held. Throws UsageError as
/// require_output_file(), and std::system_error, for example on a full disk.
void write_file(const std::string& path, std::string_view text, std::string_view origin);

}  // namespace symm
