#pragma once
/// \file
/// A program's message about a file that it could read or write forever.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "common/tests/run_program.hpp"
#include "common/tests/temporary_directory.hpp"

namespace symm {

/// Expects that the program refuses special files, folders and the empty name, before its work
/// begins and in one line. `with_file` turns a name into a command line.
template <class WithFile>
void expect_regular_files_only(const WithFile& with_file) {
    const TemporaryDirectory directory;
    const std::string fifo = directory.path() / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    const std::string folder = directory.path();
    for (const std::string& file :
         {fifo, folder, folder + "/missing/file", std::string("/dev/full"), std::string()}) {
        const std::string command = with_file("'" + file + "'");
        const Finished run = run_program(command, "", 20);
        EXPECT_EQ(run.exit_code, 2) << command << "\n" << run.output;
        EXPECT_EQ(std::count(run.output.begin(), run.output.end(), '\n'), 1) << run.output;
    }
}

}  // namespace symm
