#pragma once
/// \file
/// Texts in JSON: the one rule by which the tools quote them.

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace symm {

/// The text (UTF-8) as a string of JSON, with its quotes. fmt writes numbers, arrays and objects.
inline std::string json_string(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += {'\\', c};
        } else if (static_cast<unsigned char>(c) < 0x20) {
            result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
            result += c;
        }
    }
    return result + '"';
}

}  // namespace symm
