#pragma once
/// \file
/// Numbers in the text that a user has written.

#include <cctype>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace symm {

/// All of `text` as a decimal number (`010` is ten). Nothing where it is not a number from `least`
/// to `most`.
template <class T>
std::optional<T> number_in(std::string_view text, T least, T most) {
    T value{};
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (error != std::errc{} || end != last || !(value >= least && value <= most)) {
        return std::nullopt;
    }
    return value;
}

/// A number of bytes, up to 2^56: a whole number, then nothing, B, K, M, G or T. The units are
/// powers of 1024. They may be written as KB or KiB too, in upper or lower case.
inline std::optional<std::size_t> bytes_in(std::string_view text) {
    constexpr std::string_view kUnits = "bkmgt";
    const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
    std::string unit(text.substr(digits.size()));
    for (char& c : unit) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    const std::size_t power = unit.empty() ? 0 : kUnits.find(unit[0]);
    const bool known =
        unit.size() <= 1 || (power > 0 && (unit.substr(1) == "b" || unit.substr(1) == "ib"));
    if (power == std::string_view::npos || !known) {
        return std::nullopt;
    }
    const auto number = number_in(digits, std::size_t{0}, (std::size_t{1} << 56) >> (10 * power));
    return number ? std::optional(*number << (10 * power)) : std::nullopt;
}

}  // namespace symm
