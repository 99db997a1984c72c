#include "common/explore/explore_main.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>

#include "common/explore/story.hpp"

namespace symm::explore {
namespace {

/// Whether all three searches visit the same executions, as far as the searches end.
bool agree(const Protocol& protocol, Options options) {
    options.collect = true;
    std::array<Report, 3> reports;
    for (std::size_t i = 0; i < reports.size(); ++i) {
        options.reduction = static_cast<Reduction>(i);
        reports[i] = explore(options, protocol.setup);
    }
    const auto& [plain, sleeping, reduced] = reports;
    const bool same = (!plain.exhausted || plain.graphs == reduced.graphs) &&
                      (!sleeping.exhausted || sleeping.graphs == reduced.graphs);
    fmt::print("{:<24} {:<9} {:>11} {:>11} {:>11} {:>9}  {}\n", protocol.name,
               options.may_give_up ? "give up" : "end",
               plain.exhausted ? std::to_string(plain.executions) : "too many",
               sleeping.exhausted ? std::to_string(sleeping.executions) : "too many",
               reduced.exhausted ? std::to_string(reduced.executions) : "too many",
               reduced.graphs.size(), same ? "same" : "DIFFERENT");
    std::fflush(stdout);
    return same;
}

}  // namespace

int explore_main(int argc, char** argv, const std::vector<Protocol>& protocols) {
    CLI::App app(
        "Explores protocols: every order of their threads, and every value that a load may "
        "return.\nExit status: 0 if nothing was wrong, 1 if something was, 2 for bad usage.");
    std::vector<std::string> only = {""};
    std::size_t lines = 24;
    Options options;
    std::string json;
    bool trace = false;
    bool compare = false;
    bool list = false;
    app.add_option("protocol", only, "Only protocols whose names begin with this; default: all");
    app.add_option("--lines", lines, "Print at most this many steps of a failing execution");
    app.add_option("--seconds", options.seconds, "Stop each search after this many seconds")
        ->check(CLI::Range(0.001, 1e6));
    app.add_option("--executions", options.most_executions,
                   "Stop each search after this many executions");
    app.add_option("--random", options.random,
                   "Try random executions from this seed, instead of all");
    app.add_flag("--trace", trace, "Print every step of a failing execution");
    app.add_option("--json", json, "Append the results to a file, one line of JSON per search");
    app.add_flag("--compare", compare,
                 "Search without reduction, with sleep sets and with source sets, and compare the "
                 "executions visited");
    app.add_flag("--list", list, "List the protocols' names");
    CLI11_PARSE(app, argc, argv);
    if (list) {
        for (const Protocol& protocol : protocols) {
            fmt::print("{}\n", protocol.name);
        }
        return 0;
    }
    std::ofstream rows;
    if (!json.empty()) {
        rows.open(json, std::ios::app);
        if (!rows) {
            fmt::print(stderr, "cannot write to '{}'\n", json);
            return 2;
        }
    }
    if (compare) {
        fmt::print("{:<24} {:<9} {:>11} {:>11} {:>11} {:>9}\n", "protocol", "waits", "all",
                   "sleep sets", "source sets", "different");
    } else {
        fmt::print("{:<24} {:<9} {:>7} {:>11} {:>8}\n", "protocol", "waits", "threads",
                   "executions", "seconds");
    }
    std::vector<Protocol> chosen;
    for (const std::string& name : only) {
        std::ranges::copy_if(protocols, std::back_inserter(chosen),
                             [&](const Protocol& one) { return one.name.starts_with(name); });
    }
    for (const Protocol& protocol : chosen) {
        for (const bool may_give_up : {false, true}) {
            if (may_give_up && !protocol.may_give_up) {
                continue;
            }
            options.may_give_up = may_give_up;
            if (compare) {
                if (!agree(protocol, options)) {
                    return 1;
                }
                continue;
            }
            const bool tells = ::isatty(STDERR_FILENO) != 0;
            options.progress = [&](std::uint64_t executions, double seconds) {
                if (tells) {
                    fmt::print(stderr, "\r{}: {} executions in {:.0f} s ", protocol.name,
                               executions, seconds);
                }
            };
            Report report;
            try {
                report = explore(options, protocol.setup);
            } catch (const std::exception& error) {  // the scene is invalid
                report.failed = true;
                report.why = error.what();
            }
            if (tells) {
                fmt::print(stderr, "\r\033[K");
            }
            fmt::print("{:<24} {:<9} {:>7} {:>11} {:>8.2f}  {}\n", protocol.name,
                       may_give_up ? "give up" : "end", report.threads, report.executions,
                       report.seconds,
                       report.failed      ? "WRONG"
                       : report.exhausted ? "exhausted"
                                          : report.why);
            std::fflush(stdout);
            if (rows.is_open()) {
                rows << as_json(report, protocol.name, may_give_up) << std::endl;
            }
            if (report.failed) {
                fmt::print("\n{}", story(report, trace, lines));
                return 1;
            }
        }
    }
    if (chosen.empty()) {
        fmt::print(stderr, "there is no protocol '{}': choose one of", fmt::join(only, " "));
        for (const Protocol& protocol : protocols) {
            fmt::print(stderr, " {}", protocol.name);
        }
        fmt::print(stderr, "\n");
        return 2;
    }
    return 0;
}

}  // namespace symm::explore
