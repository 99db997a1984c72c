#include "common/cli/bytes.hpp"

#include <fmt/core.h>

#include "common/sys/number.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {

std::size_t parse_bytes(std::string_view text) {
    const auto bytes = bytes_in(text);
    if (!bytes) {
        throw UsageError(
            fmt::format("'{}' is not a size: give 4096, 64K, 1M or 1G, up to 65536T", text));
    }
    return *bytes;
}

ByteRange parse_byte_range(std::string_view option, std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::size_t first = parse_bytes(text.substr(0, colon));
    const std::size_t last =
        colon == std::string_view::npos ? first : parse_bytes(text.substr(colon + 1));
    if (first == 0 || first > last) {
        throw UsageError(fmt::format("{} {}: pass one size, or the smaller, a colon and the larger",
                                     option, text));
    }
    return {first, last};
}

std::string format_bytes(std::size_t bytes) {
    constexpr std::string_view kUnits[] = {"", "K", "M", "G", "T"};
    std::size_t unit = 0;
    while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits)) {
        bytes /= 1024;
        ++unit;
    }
    return fmt::format("{}{}", bytes, kUnits[unit]);
}

}  // namespace symm
