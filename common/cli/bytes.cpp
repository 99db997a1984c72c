#include "common/cli/bytes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "common/cli/usage_error.hpp"

namespace symm {

std::size_t parse_bytes(std::string_view text) {
    const auto refuse = [&]() -> UsageError {
        return UsageError(fmt::format("'{}' is not a size: write 4096, 64K, 1M or 1G", text));
    };
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) {
        throw refuse();
    }
    std::string unit(end, text.data() + text.size());
    std::transform(unit.begin(), unit.end(), unit.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    int shift = 0;
    if (unit == "K" || unit == "KB" || unit == "KIB") {
        shift = 10;
    } else if (unit == "M" || unit == "MB" || unit == "MIB") {
        shift = 20;
    } else if (unit == "G" || unit == "GB" || unit == "GIB") {
        shift = 30;
    } else if (!unit.empty() && unit != "B") {
        throw refuse();
    }
    if (number > (std::size_t{1} << 60) >> shift) {
        throw UsageError(fmt::format("'{}' is more than any machine has", text));
    }
    return number << shift;
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
