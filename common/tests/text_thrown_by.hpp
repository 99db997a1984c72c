#pragma once
/// \file
/// The text of an exception, for tests of what it says.

#include <exception>
#include <string>

namespace symm::testing {

/// The text of what `work` throws; empty where it throws nothing.
template <class Work>
std::string text_thrown_by(const Work& work) {
    try {
        work();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

}  // namespace symm::testing
