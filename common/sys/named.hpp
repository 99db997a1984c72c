#pragma once
/// \file
/// The values of an enumeration by the names that people type.

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "common/sys/usage_error.hpp"

namespace symm {

/// The value with this name. `names` lists all of them, in the order of the enumeration, which
/// begins with 0. Throws UsageError for another name: `--op mean: say one of sum, prod`.
template <class Enum, std::size_t kCount>
Enum named(const std::array<std::string_view, kCount>& names, std::string_view option,
           std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        throw UsageError(fmt::format("{} {}: say one of {}", option, name, fmt::join(names, ", ")));
    }
    return static_cast<Enum>(found - names.begin());
}

}  // namespace symm
