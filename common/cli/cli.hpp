#pragma once
/// \file
/// Shared by the programs of all labs: `--driver`, `--ranks` and `--mode`, kinds of options, how
/// errors end a program.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <limits>
#include <string>

#include "common/ranks/ranks.hpp"
#include "common/sys/named.hpp"
#include "common/sys/number.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {

/// Adds an option that takes a size as bytes.hpp reads it.
CLI::Option* add_bytes_option(CLI::App& app, const std::string& name, std::size_t& bytes,
                              const std::string& description);

/// Adds an option that names a file to write. One that cannot be written is refused before the work
/// begins.
CLI::Option* add_output_option(CLI::App& app, const std::string& name, std::string& path,
                               const std::string& description);

/// Adds an option that takes a number in decimal, from `least` to `most`.
template <class T>
CLI::Option* add_number_option(CLI::App& app, const std::string& name, T& number, T least, T most,
                               const std::string& description) {
    return app
        .add_option_function<std::string>(
            name,
            [&number, name, least, most](const std::string& text) {
                const auto given = number_in(text, least, most);
                if (!given) {
                    throw UsageError(
                        most == std::numeric_limits<T>::max()
                            ? fmt::format("{} {}: give a number, at least {}", name, text, least)
                            : fmt::format("{} {}: give a number from {} to {}", name, text, least,
                                          most));
                }
                number = *given;
            },
            description)
        ->type_name("NUMBER")
        ->default_str(fmt::format("{}", number));
}

/// Adds an option that takes one of an enumeration's names (named.hpp).
template <Named Enum>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Enum& value,
                        const std::string& description) {
    return app
        .add_option_function<std::string>(
            name, [&value, name](const std::string& text) { value = named<Enum>(name, text); },
            description)
        ->default_str(std::string(name_of(value)));
}

/// Adds `--ranks`, from 1 to `most`, and `--mode process|thread`.
void add_rank_options(CLI::App& app, RankOptions& options, int most = kMaxRanks);

/// Adds `--version`, and `--driver auto|native|emulated` also to subcommands, parses the command
/// line, runs `body` and returns the exit code: what `body` returns; kExitUsage for bad usage,
/// including a bad environment; kExitFailed for any other exception, and if an error was logged or
/// stdout could not be written. Prints the reason on stderr, in one line.
int run_main(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

}  // namespace symm
