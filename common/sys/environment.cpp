#include "common/sys/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "common/sys/bytes.hpp"
#include "common/sys/number.hpp"
#include "common/sys/usage_error.hpp"

namespace symm::env {
namespace {

constexpr double kLeastSeconds = 1e-3;
constexpr double kMostSeconds = 24 * 3600;

std::optional<std::string> parse(const OneOf& values, const std::string& text) {
    const bool known = std::ranges::find(values.words, text) != values.words.end();
    return known ? std::optional(text) : std::nullopt;
}

std::optional<long> parse(const Number& values, const std::string& text) {
    return number_in(text, values.least, values.most);
}

std::optional<std::size_t> parse(const Bytes&, const std::string& text) {
    const auto bytes = bytes_in(text);
    return bytes == 0 ? std::nullopt : bytes;
}

std::optional<double> parse(const Seconds&, const std::string& text) {
    return number_in(text, kLeastSeconds, kMostSeconds);
}

std::optional<std::string> parse(const Text&, const std::string& text) {
    return text;
}

// Empty for a variable that is not set and has no default.
template <class Values>
auto read(const Variable& variable, const Values& values) {
    const std::string given = foreign(variable.name);
    auto value = parse(values, given.empty() ? variable.standard : given);
    if (!value && !given.empty()) {
        refuse(variable, given);
    }
    return value;
}

std::string words(const OneOf& values) {
    const auto end = std::ranges::find(values.words, std::string_view());
    return fmt::format("{}", fmt::join(values.words.begin(), end, " or "));
}
std::string words(const Number& values) {
    return fmt::format("{}{}{}", values.least, values.most - values.least == 1 ? " or " : " to ",
                       values.most);
}
std::string words(const Bytes&) {
    return "bytes, as in 268435456, 512M or 2G";
}
std::string words(const Seconds&) {
    return fmt::format("seconds, from {} to {}", kLeastSeconds, kMostSeconds);
}
std::string words(const Text& values) {
    return std::string(values.form);
}

}  // namespace

std::string choice(Name<OneOf> name) {
    return read(*name, std::get<OneOf>((*name).values)).value_or("");
}
long number(Name<Number> name) {
    return read(*name, std::get<Number>((*name).values)).value();
}
std::size_t bytes(Name<Bytes> name) {
    return read(*name, std::get<Bytes>((*name).values)).value();
}
double seconds(Name<Seconds> name) {
    return read(*name, std::get<Seconds>((*name).values)).value();
}
std::string text(Name<Text> name) {
    return read(*name, std::get<Text>((*name).values)).value();
}

bool is_set(const char* name) {
    return !foreign(name).empty();
}

std::string foreign(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::string describe(const Variable& variable) {
    return std::visit([](const auto& values) { return words(values); }, variable.values);
}

void refuse(const Variable& variable, std::string_view value) {
    throw UsageError("{}={} is not understood: give {}", variable.name, value, describe(variable));
}

}  // namespace symm::env

void symm::require_environment() {
    for (const env::Variable& variable : env::kVariables) {
        std::visit([&](const auto& values) { env::read(variable, values); }, variable.values);
    }
}
