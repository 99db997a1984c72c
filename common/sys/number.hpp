#pragma once
/// \file
/// Numbers as people write them.

#include <cctype>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace symm {

/// The number that `text` is, in decimal (`010` is ten) and from its first to its last character,
/// if it lies from `least` to `most`.
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

/// The number of bytes that `text` is: a whole number, then nothing, K, M, G or T (powers of 1024;
/// also as KB or KiB, in any case), up to 2^56.
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
