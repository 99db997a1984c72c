#pragma once
/// \file
/// Sizes as people write them: `64K`, `1M`, `256MiB`, `1G`.

#include <cstddef>
#include <string>
#include <string_view>

namespace symm {

/// The size as bytes_in() reads it. Throws UsageError for anything else.
std::size_t parse_bytes(std::string_view text);

/// Sizes from `first` on, up to `last`.
struct ByteRange {
    std::size_t first;
    std::size_t last;
};

/// One size, `64K`, or a range, `1K:1G`, of at least 1 byte. Throws UsageError, naming the option.
ByteRange parse_byte_range(std::string_view option, std::string_view text);

/// The shortest exact way to write a size: 4096 is `4K`, 4097 is `4097`.
std::string format_bytes(std::size_t bytes);

}  // namespace symm
