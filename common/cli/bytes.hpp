#pragma once
/// \file
/// Sizes as people write them: `64K`, `1M`, `256MiB`, `1G`.

#include <cstddef>
#include <string>
#include <string_view>

namespace symm {

/// Bytes in `text`: a whole number, then nothing, K, M or G (powers of 1024; `KiB`, `KB`, any
/// case). Throws UsageError for anything else and for more than 2^60.
std::size_t parse_bytes(std::string_view text);

/// The shortest exact way to write a size: 4096 is `4K`, 4097 is `4097`.
std::string format_bytes(std::size_t bytes);

}  // namespace symm
