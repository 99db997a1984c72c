#pragma once
/// \file
/// Runs one of this build's programs, as a user would, and keeps its output.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace symm {

/// How a program ended, and its output.
struct Finished {
    int exit_code =
        -1;  ///< 128 and more: killed by that signal, as a shell counts; 124: it took too long.
    std::string output;  ///< What it wrote to stdout and stderr, in order.
};

/// The directory of this build's programs: that of this test, also where the build has been copied.
inline std::string binary_directory() {
    return std::filesystem::canonical("/proc/self/exe").parent_path();
}

/// Runs `<binary_directory()>/<command_line>` through the shell, with the variables in
/// `environment` ("A=1 B=2") and the emulated driver, for at most `seconds`.
inline Finished run_program(const std::string& command_line, const std::string& environment = "",
                            int seconds = 100) {
    const std::string command = "env SYMM_DRIVER=emulated " + environment + " timeout -k 5 " +
                                std::to_string(seconds) + " " + binary_directory() + "/" +
                                command_line + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) {
        throw std::runtime_error("popen failed: " + command);
    }
    Finished finished;
    std::array<char, 4096> buffer;
    for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
        finished.output.append(buffer.data(), n);
    }
    const int status = pclose(pipe);
    finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return finished;
}

/// Runs one test of this program, DISABLED_ ones too, in a process of its own. Expects that there
/// is such a test: GoogleTest reports success where the filter matches none.
inline Finished run_test(const std::string& test, const std::string& environment = "") {
    const auto program = std::filesystem::canonical("/proc/self/exe").filename().string();
    Finished finished = run_program(
        program + " --gtest_also_run_disabled_tests --gtest_filter='" + test + "'", environment);
    EXPECT_NE(finished.output.find("Running 1 test from 1 test suite."), std::string::npos)
        << test << "\n"
        << finished.output;
    return finished;
}

/// The same for a test that has to pass.
inline void expect_passes(const std::string& test, const std::string& environment = "") {
    const Finished finished = run_test(test, environment);
    EXPECT_EQ(finished.exit_code, 0) << environment << "\n" << finished.output;
}

/// Runs the command where stdout is a full disk, and where stdout is closed: expects exit status 1,
/// and an error that names stdout.
inline void expect_failure_without_stdout(const std::string& command_line) {
    for (const char* to : {">/dev/full", ">&-"}) {
        const Finished finished = run_program(command_line + " 2>&1 " + to + "; exit $?");
        EXPECT_EQ(finished.exit_code, 1) << command_line << to;
        EXPECT_NE(finished.output.find("stdout"), std::string::npos) << to << finished.output;
    }
}

}  // namespace symm
