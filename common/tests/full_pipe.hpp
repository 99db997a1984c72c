#pragma once
/// \file
/// A pipe to which no program can write.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/sys/descriptor.hpp"

namespace symm {

/// A full pipe without a reader. Writes to it block.
struct FullPipe {
    FullPipe() {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        reader = UniqueFd(ends[0]);
        writer = UniqueFd(ends[1]);
        while (::write(writer.get(), "full", 1) == 1) {
        }
        ::fcntl(writer.get(), F_SETFL, 0);
    }
    UniqueFd reader;
    UniqueFd writer;
};

}  // namespace symm
