#pragma once
/// \file
/// What is right, but wasteful: it fails a test, but not an exercise.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace symm::testing {

/// Fails the test that calls it. In the course (SYMM_COURSE) it only prints `text`, from which an
/// exercise's verdict tells that the answer is right, but wasteful.
inline void waste(const std::string& text) {
    if (std::getenv("SYMM_COURSE") == nullptr) {
        ADD_FAILURE() << text;
    }
    std::printf("waste: %s\n", text.c_str());
}

}  // namespace symm::testing
