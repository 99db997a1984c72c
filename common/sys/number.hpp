#pragma once
/// \file
/// Numbers as people write them.

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace symm {

/// The number that `text` is, in decimal (`010` is ten) and from its first to its last character, if
/// it lies from `least` to `most`.
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

}  // namespace symm
