#pragma once
/// \file
/// The values of an enumeration by the names that people type.

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>

#include "common/sys/usage_error.hpp"

namespace symm {

/// The value with this name. `names` lists all of them, in the order of the enumeration, which
/// begins with 0. Throws UsageError for another name: `--op mean: choose one of sum, prod`.
template <class Enum, std::size_t kCount>
Enum named(const std::array<std::string_view, kCount>& names, std::string_view option,
           std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        throw UsageError("{} {}: choose one of {}", option, name, fmt::join(names, ", "));
    }
    return static_cast<Enum>(found - names.begin());
}

/// Throws std::invalid_argument for a number that has no name: `99 is not a valid DataType`.
template <class Enum>
void require_named(std::span<const std::string_view> names, const char* what, Enum value) {
    if (static_cast<std::size_t>(value) >= names.size()) {
        throw std::invalid_argument(
            fmt::format("{} is not a valid {}", static_cast<std::int64_t>(value), what));
    }
}

/// The value's name. Throws as require_named().
template <class Enum>
std::string_view name_among(std::span<const std::string_view> names, const char* what, Enum value) {
    require_named(names, what, value);
    return names[static_cast<std::size_t>(value)];
}

}  // namespace symm
