#pragma once
/// \file
/// Environment variables that are set for a scope.

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace symm {

/// Sets a variable, or unsets it where there is no value, for this process and those that it
/// starts. The destructor restores it.
class VariableInForce {
public:
    VariableInForce(std::string name, const std::optional<std::string>& value)
        : name_(std::move(name)) {
        if (const char* before = std::getenv(name_.c_str())) {
            before_ = before;
        }
        set(value);
    }
    VariableInForce(const VariableInForce&) = delete;
    VariableInForce& operator=(const VariableInForce&) = delete;
    ~VariableInForce() { set(before_); }

private:
    void set(const std::optional<std::string>& value) const {
        value ? ::setenv(name_.c_str(), value->c_str(), 1) : ::unsetenv(name_.c_str());
    }

    std::string name_;
    std::optional<std::string> before_;
};

}  // namespace symm
