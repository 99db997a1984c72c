#include "common/sys/named.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/sys/refuse_unless.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {

std::size_t find_name(std::span<const std::string_view> names, std::string_view option,
                      std::string_view name) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
        throw UsageError("{} {}: choose one of {}", option, name, fmt::join(names, ", "));
    }
    return static_cast<std::size_t>(found - names.begin());
}

std::string_view name_at(std::span<const std::string_view> names, std::string_view what,
                         std::int64_t position) {
    const auto index = static_cast<std::size_t>(position);
    refuse_unless(index < names.size(), "{} is not a valid {}", position, what);
    return names[index];
}

}  // namespace symm
