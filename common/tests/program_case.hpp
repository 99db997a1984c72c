#pragma once
/// \file
/// Runs of a program, as rows of a table.

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "common/tests/run_program.hpp"
#include "common/tests/running.hpp"

namespace symm::testing {

/// One run of a program, and how it has to end.
struct ProgramCase {
    std::string arguments;  ///< Separated by blanks.
    int exit_code = 0;
    std::vector<std::string> says = {};  ///< In this order; on stderr unless the run succeeds.
    std::vector<std::string> environment = {};
};

/// Runs `program` of this build on the emulated driver, once for each row. Bad usage (exit code 2)
/// has to give one line of errors. No run may leave a file.
inline void expect_runs(const std::string& program, const std::vector<ProgramCase>& cases) {
    for (const auto& [arguments, exit_code, says, environment] : cases) {
        SCOPED_TRACE(program + " " + arguments);
        std::vector<std::string> command{binary_directory() + "/" + program};
        std::istringstream words(arguments);
        for (std::string word; words >> word;) {
            command.push_back(word);
        }
        std::vector<std::string> variables{"SYMM_DRIVER=emulated"};
        variables.insert(variables.end(), environment.begin(), environment.end());
        Running run(command, variables);
        EXPECT_EQ(run.end().code, exit_code) << run.output() << run.errors();
        const std::string said = exit_code == 0 ? run.output() : run.errors();
        std::size_t at = 0;
        for (const std::string& text : says) {
            at = said.find(text, at);
            ASSERT_NE(at, std::string::npos) << "'" << text << "' is missing in\n" << said;
        }
        if (exit_code == 2) {
            EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
        }
        EXPECT_EQ(run.left(), std::vector<std::string>());
    }
}

/// Expects that `program` refuses each of the command lines in `arguments`, which '|' separates,
/// with one line of errors.
inline void expect_refused(const std::string& program, const std::string& arguments) {
    std::vector<ProgramCase> cases;
    std::istringstream lines(arguments);
    for (std::string line; std::getline(lines, line, '|');) {
        cases.push_back({line, 2, {"error: "}});
    }
    expect_runs(program, cases);
}

}  // namespace symm::testing
