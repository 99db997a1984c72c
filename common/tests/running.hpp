#pragma once
/// \file
/// Programs that tests start, with their output.

#include <gtest/gtest.h>

#include <fcntl.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/sys/process.hpp"
#include "common/tests/temporary_directory.hpp"

namespace symm::testing {

/// A file's text.
inline std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A running program, with its own directory for temporary files.
class Running {
public:
    explicit Running(std::vector<std::string> arguments, std::vector<std::string> environment = {})
        : temporary_(files_.path() / "tmp") {
        std::filesystem::create_directory(temporary_);
        const auto open = [&](const char* name) {
            return UniqueFd(::open((files_.path() / name).c_str(),
                                   O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
        };
        const UniqueFd out = open("out");
        const UniqueFd error = open("error");
        Command command;
        command.arguments = std::move(arguments);
        command.environment = std::move(environment);
        command.environment.push_back("TMPDIR=" + temporary_.string());
        command.standard_output = out.get();
        command.standard_error = error.get();
        process = Process(command);
    }

    /// Waits until the program ends, long enough for any machine.
    ExitStatus end() {
        const auto status = process.wait(Deadline::after(std::chrono::seconds(100)));
        EXPECT_TRUE(status) << "the program did not end:\n" << output() << errors();
        return status.value_or(ExitStatus{-1, 0});
    }
    std::string output() const { return text_of(files_.path() / "out"); }
    std::string errors() const { return text_of(files_.path() / "error"); }
    /// The files that it has left in its temporary directory.
    std::vector<std::string> left() const {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(temporary_)) {
            names.push_back(entry.path().filename());
        }
        return names;
    }
    const std::filesystem::path& temporary() const { return temporary_; }

private:
    TemporaryDirectory files_;
    std::filesystem::path temporary_;

public:
    Process process;  // destroyed before its files are removed
};

}  // namespace symm::testing
