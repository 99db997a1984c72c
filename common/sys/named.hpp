#pragma once
/// \file
/// The names of an enumeration's values, as people type and read them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace symm {

/// An enumeration's own name, and those of its values, which count from 0.
template <std::size_t kCount>
struct Names {
    std::string_view kind;
    std::array<std::string_view, kCount> values;
};

/// An enumeration has names if there is a function of this kind beside it:
///
///     constexpr auto names_of(ReduceOp) { return names("ReduceOp", "sum", "prod"); }
template <class... Value>
constexpr Names<sizeof...(Value)> names(std::string_view kind, const Value&... values) {
    return {kind, {values...}};
}

template <class Enum>
concept Named = requires(Enum value) {
    names_of(value);
};

template <Named Enum>
inline constexpr auto kNamesOf = names_of(Enum{});

/// The names that there are now. An enumeration may get more when the program runs: then
/// `std::span<const std::string_view> all_names(Enum)` beside it has all.
template <Named Enum>
std::span<const std::string_view> names_now() {
    if constexpr (requires { all_names(Enum{}); }) {
        return all_names(Enum{});
    } else {
        return kNamesOf<Enum>.values;
    }
}

/// The position of a name. Throws UsageError for another: `--op mean: choose one of sum, prod`.
std::size_t find_name(std::span<const std::string_view> names, std::string_view option,
                      std::string_view name);
/// The name at a position. Throws std::invalid_argument if none: `99 is not a valid DataType`.
std::string_view name_at(std::span<const std::string_view> names, std::string_view what,
                         std::int64_t position);

/// The value with this name. Throws as find_name().
template <Named Enum>
Enum named(std::string_view option, std::string_view name) {
    return static_cast<Enum>(find_name(names_now<Enum>(), option, name));
}

/// The value's name. Throws as name_at().
template <Named Enum>
std::string_view name_of(Enum value) {
    return name_at(names_now<Enum>(), kNamesOf<Enum>.kind, static_cast<std::int64_t>(value));
}

/// Throws std::invalid_argument for a number that is no value of its enumeration.
template <Named... Enum>
void require_known(Enum... values) {
    (static_cast<void>(name_of(values)), ...);
}

}  // namespace symm
