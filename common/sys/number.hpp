#pragma once
/// \file
/// Numbers in the text that a user has written.

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace symm {

/// All of `text` as a decimal number (`010` is ten). Nothing if it is not a number from `least`
/// to `most`.
template <class T>
[[nodiscard]] std::optional<T> number_in(std::string_view text, T least, T most) {
    T value{};
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (error != std::errc{} || end != last || !(value >= least && value <= most)) {
        return std::nullopt;
    }
    return value;
}

}  // namespace symm
