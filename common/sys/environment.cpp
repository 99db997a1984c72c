#include "common/sys/environment.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "common/sys/bytes.hpp"
#include "common/sys/number.hpp"
#include "common/sys/usage_error.hpp"

namespace symm::env {
namespace {

constexpr double kLeastSeconds = 1e-3;
constexpr double kMostSeconds = 24 * 3600;

bool may_hold(const Variable& variable, const std::string& text) {
    if (const auto* one_of = std::get_if<OneOf>(&variable.values)) {
        return std::ranges::find(one_of->words, text) != one_of->words.end();
    }
    if (const auto* number = std::get_if<Number>(&variable.values)) {
        return number_in(text, number->least, number->most).has_value();
    }
    if (std::holds_alternative<Seconds>(variable.values)) {
        return number_in(text, kLeastSeconds, kMostSeconds).has_value();
    }
    return std::holds_alternative<Text>(variable.values) || bytes_in(text).value_or(0) != 0;
}

// The variable's value, or its default.
std::string value_of(const Variable& variable) {
    const std::string given = foreign(variable.name);
    if (!given.empty() && !may_hold(variable, given)) {
        refuse(variable, given);
    }
    return given.empty() ? variable.standard : given;
}

template <class T>
T number_of(const Variable& variable) {
    using Limits = std::numeric_limits<T>;
    return number_in(value_of(variable), Limits::lowest(), Limits::max()).value();
}

}  // namespace

std::string choice(Name<OneOf> name) {
    return value_of(*name);
}
long number(Name<Number> name) {
    return number_of<long>(*name);
}
std::size_t bytes(Name<Bytes> name) {
    return bytes_in(value_of(*name)).value();
}
double seconds(Name<Seconds> name) {
    return number_of<double>(*name);
}
std::string text(Name<Text> name) {
    return value_of(*name);
}

bool is_set(const char* name) {
    return !foreign(name).empty();
}

std::string foreign(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::string describe(const Variable& variable) {
    if (const auto* one_of = std::get_if<OneOf>(&variable.values)) {
        const auto end = std::ranges::find(one_of->words, std::string_view());
        return fmt::format("{}", fmt::join(one_of->words.begin(), end, " or "));
    }
    if (const auto* number = std::get_if<Number>(&variable.values)) {
        const auto [least, most] = *number;
        return fmt::format("{}{}{}", least, most - least == 1 ? " or " : " to ", most);
    }
    if (const auto* text = std::get_if<Text>(&variable.values)) {
        return std::string(text->form);
    }
    return std::holds_alternative<Bytes>(variable.values)
               ? "bytes, as in 268435456, 512M or 2G"
               : fmt::format("seconds, from {} to {}", kLeastSeconds, kMostSeconds);
}

void refuse(const Variable& variable, std::string_view value) {
    throw UsageError("{}={} is not understood: give {}", variable.name, value, describe(variable));
}

}  // namespace symm::env

void symm::require_environment() {
    for (const env::Variable& variable : env::kVariables) {
        env::value_of(variable);
    }
}
