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

/// Throws UsageError unless `path` can be written: its folder exists and can be changed, and what
/// is there already is a regular file. For a check before long work.
void require_output_file(const std::string& path, std::string_view origin);

/// Writes the file as a whole: if that fails, for example on a full disk, an old file stays as it
/// was. A new one replaces it, with the mode of the old one, and with its owner and group if this
/// user may set them. Throws UsageError as require_output_file(), and std::system_error.
void write_file(const std::string& path, std::string_view text, std::string_view origin);

}  // namespace symm
