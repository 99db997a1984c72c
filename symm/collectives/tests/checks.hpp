#pragma once
/// \file
/// What tests of any collective need.

#include <fmt/core.h>

#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <symm/symm.hpp>
#include <utility>

namespace symm::collectives {

/// Throws std::runtime_error with the text unless `is_so`.
template <class... Arguments>
void require(bool is_so, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    if (!is_so) {
        throw std::runtime_error(fmt::format(text, std::forward<Arguments>(arguments)...));
    }
}

/// Requires that `call` throws std::invalid_argument with this text.
inline void refuses(std::string_view text, const std::function<void()>& call) {
    std::string thrown = "nothing";
    try {
        call();
    } catch (const std::invalid_argument& error) {
        thrown = error.what();
    }
    require(thrown.find(text) != std::string::npos, "thrown is '{}', not '{}'", thrown, text);
}

/// An environment variable, while this lives.
class Variable {
public:
    Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;
    ~Variable() { ::unsetenv(name_); }

private:
    const char* name_;
};

/// Runs `body` on ranks that are threads.
inline void on_ranks(int ranks, const std::function<void(symm::Rank&)>& body) {
    symm::run_ranks({.ranks = ranks, .mode = symm::RankMode::kThread}, body);
}

}  // namespace symm::collectives
