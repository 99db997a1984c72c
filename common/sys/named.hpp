#pragma once
/// \file
/// The names of an enumeration's values, as people type and read them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace symm {

/// An enumeration whose values count from 0 has names if it specializes this:
///
///     template <>
///     struct Names<ReduceOp> {
///         static constexpr std::string_view kEnum = "ReduceOp";
///         static constexpr std::string_view kNames[] = {"sum", "prod"};
///     };
template <class Enum>
struct Names;

template <class Enum>
concept Named = requires {
    Names<Enum>::kNames;
};

/// The position of a name. Throws UsageError for another: `--op mean: choose one of sum, prod`.
std::size_t find_name(std::span<const std::string_view> names, std::string_view option,
                      std::string_view name);
/// The name at a position. Throws std::invalid_argument if none: `99 is not a valid DataType`.
std::string_view name_at(std::span<const std::string_view> names, std::string_view what,
                         std::int64_t position);

/// The value with this name. Throws as find_name().
template <Named Enum>
Enum named(std::string_view option, std::string_view name) {
    return static_cast<Enum>(find_name(Names<Enum>::kNames, option, name));
}

/// The value's name. Throws as name_at().
template <Named Enum>
std::string_view name_of(Enum value) {
    return name_at(Names<Enum>::kNames, Names<Enum>::kEnum, static_cast<std::int64_t>(value));
}

/// Throws std::invalid_argument for a number that is no value of its enumeration.
template <Named... Enum>
void require_known(Enum... values) {
    (static_cast<void>(name_of(values)), ...);
}

}  // namespace symm
