#pragma once
/// \file
/// Cases that not every machine can run.

#include <gtest/gtest.h>

/// First line of a case: skips it unless the machine has what it needs.
#define SYMM_NEEDS(condition)                   \
    if (!(condition)) {                         \
        GTEST_SKIP() << "needs " << #condition; \
    }                                           \
    static_assert(true)
