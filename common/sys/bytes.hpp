#pragma once
/// \file
/// Sizes as people write them: `64K`, `1M`, `256MiB`, `1G`.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace symm {

/// A number of bytes, up to 2^56: a whole number, then nothing, B, K, M, G or T. The units are
/// powers of 1024. They may be written as KB or KiB too, in upper or lower case. Nothing for any
/// other text.
[[nodiscard]] std::optional<std::size_t> bytes_in(std::string_view text);

/// The same, but throws UsageError for any other text.
std::size_t parse_bytes(std::string_view text);

/// Sizes from `first` on, up to `last`.
struct ByteRange {
    std::size_t first;
    std::size_t last;
};

/// One size, `64K`, or a range, `1K:1G`, of at least 1 byte. Throws UsageError, naming the option.
[[nodiscard]] ByteRange parse_byte_range(std::string_view option, std::string_view text);

/// The shortest exact way to write a size: 4096 is `4K`, 4097 is `4097`.
std::string format_bytes(std::size_t bytes);

}  // namespace symm
