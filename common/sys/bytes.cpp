#include "common/sys/bytes.hpp"

#include <fmt/core.h>

#include <cctype>

#include "common/sys/number.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

constexpr std::string_view kUnits = "BKMGT";  // by power of 1024

}  // namespace

std::optional<std::size_t> bytes_in(std::string_view text) {
    const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
    std::string unit(text.substr(digits.size()));
    for (char& c : unit) {
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    const std::size_t power = unit.empty() ? 0 : kUnits.find(unit[0]);
    const bool known =
        unit.size() <= 1 || (power > 0 && (unit.substr(1) == "B" || unit.substr(1) == "IB"));
    if (power == std::string_view::npos || !known) {
        return std::nullopt;
    }
    const auto number = number_in(digits, std::size_t{0}, (std::size_t{1} << 56) >> (10 * power));
    return number ? std::optional(*number << (10 * power)) : std::nullopt;
}

std::size_t parse_bytes(std::string_view text) {
    const auto bytes = bytes_in(text);
    if (!bytes) {
        throw UsageError("'{}' is not a size: give 4096, 64K, 1M or 1G, up to 65536T", text);
    }
    return *bytes;
}

ByteRange parse_byte_range(std::string_view option, std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::size_t first = parse_bytes(text.substr(0, colon));
    const std::size_t last =
        colon == std::string_view::npos ? first : parse_bytes(text.substr(colon + 1));
    if (first == 0 || first > last) {
        throw UsageError("{} {}: pass one size, or the smaller, a colon and the larger", option,
                         text);
    }
    return {first, last};
}

std::string format_bytes(std::size_t bytes) {
    std::size_t power = 0;
    while (bytes != 0 && bytes % 1024 == 0 && power + 1 < kUnits.size()) {
        bytes /= 1024;
        ++power;
    }
    return fmt::format("{}{}", bytes, power == 0 ? "" : kUnits.substr(power, 1));
}

}  // namespace symm
