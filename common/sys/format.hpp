#pragma once
/// \file
/// Text with values in it, in the form of fmt::format(): for headers that users' programs include,
/// which then need no fmt. `text_of("{} of {} bytes", 3, bytes)`.

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace symm {

/// A number, a text or an address. Texts are not copied.
using FormatValue =
    std::variant<bool, char, long long, unsigned long long, double, std::string_view, const void*>;

template <class T>
FormatValue format_value(const T& value) {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, char>) {
        return value;
    } else if constexpr (std::is_floating_point_v<T>) {
        return static_cast<double>(value);
    } else if constexpr (std::is_signed_v<T>) {
        return static_cast<long long>(value);
    } else if constexpr (std::is_unsigned_v<T>) {
        return static_cast<unsigned long long>(value);
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
        return std::string_view(value);
    } else {
        return static_cast<const void*>(value);
    }
}

/// A format string for values of these types. A wrong number of placeholders does not compile.
template <class... Arguments>
struct Format {
    template <std::convertible_to<std::string_view> Text>
#ifdef __CUDACC__  // which knows no consteval: then it is an exception
    constexpr
#else
    consteval
#endif
        Format(const Text& format)  // NOLINT(google-explicit-constructor): as fmt's
        : text(format) {
        std::size_t placeholders = 0;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] == '{' && i + 1 < text.size() && text[++i] != '{') {
                ++placeholders;
            }
        }
        if (placeholders != sizeof...(Arguments)) {
            throw std::invalid_argument("the format has another number of placeholders");
        }
    }
    std::string_view text;
};

std::string formatted(std::string_view format, std::initializer_list<FormatValue> values);

template <class... Arguments>
std::string text_of(Format<std::type_identity_t<Arguments>...> format,
                    const Arguments&... arguments) {
    return formatted(format.text, {format_value(arguments)...});
}

}  // namespace symm
