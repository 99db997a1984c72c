#include "tools/explore/explore_main.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <fstream>
#include <iterator>
#include <system_error>

#include "common/cli/cli.hpp"
#include "common/course/results.hpp"
#include "common/sys/error_text.hpp"
#include "common/sys/file.hpp"
#include "common/sys/print.hpp"
#include "common/sys/usage_error.hpp"
#include "tools/explore/counterexample.hpp"

namespace symm::explore {
namespace {

/// Prints lines to stdout. Throws std::system_error if they cannot be written.
void print(const std::string& lines) {
    if (!print_lines(STDOUT_FILENO, "", lines)) {
        throw std::system_error(errno, std::generic_category(), "cannot write to stdout");
    }
}

/// Writes over the line of a terminal. Nothing if stderr is none.
void tell(std::string_view line) {
    if (::isatty(STDERR_FILENO) != 0) {
        fmt::print(stderr, "\r{}\033[K", line);
    }
}

struct ProgramOptions {
    std::vector<std::string> names = {""};
    std::size_t lines = 8;
    std::string json;
    std::string record;
    bool compare = false;
    bool all = false;
    bool list = false;
    bool go_on = false;
    Options search;
};

constexpr std::array kSearches{"all", "sleep sets", "source sets"};  // as explore_each_way()'s

/// Prints a row about the three searches. Returns whether none failed, and those that ended visited
/// the same executions.
bool agree(const Protocol& protocol, const ProgramOptions& program) {
    const auto reports = explore_each_way(program.search, protocol.setup);
    std::vector<std::string> executions;
    std::vector<const char*> compared, others;
    const Report* failed = nullptr;
    const Report* first = nullptr;  // of those that ended
    bool same = true;
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const Report& report = reports[i];
        executions.push_back(report.failed      ? "WRONG"
                             : report.exhausted ? std::to_string(report.executions)
                                                : "too many");
        failed = report.failed ? &report : failed;
        (report.exhausted ? compared : others).push_back(kSearches[i]);
        if (report.exhausted) {
            first = first == nullptr ? &report : first;
            same = same && report.graphs == first->graphs;
        }
    }
    const std::string result =
        failed != nullptr      ? "WRONG"
        : !same                ? "DIFFERENT"
        : compared.size() == 3 ? "same"
        : compared.size() == 2
            ? fmt::format("same in {}; not compared: {}", fmt::join(compared, " and "), others[0])
            : "not compared";
    print(fmt::format("{:<24} {:<9} {:>11} {:>9}  {}", protocol.name,
                      program.search.may_give_up ? "give up" : "end", fmt::join(executions, " "),
                      first == nullptr ? "" : std::to_string(first->graphs.size()), result));
    if (failed != nullptr) {
        print(fmt::format("\n{}\n", fmt::join(counterexample(*failed, program.lines), "\n")));
    }
    return failed == nullptr && same;
}

std::string search_name(const Protocol& protocol, bool may_give_up) {
    return fmt::format("{} {}", protocol.name, may_give_up ? "give up" : "end");
}

/// Prints a protocol's row of the table, and a counterexample. Returns whether it is right.
bool is_right(const Protocol& protocol, const ProgramOptions& program) {
    const bool may_give_up = program.search.may_give_up;
    const double limit = program.search.seconds;
    tell(fmt::format("{}: searching, at most {} s", protocol.name, limit));
    Options search = program.search;
    search.sample = program.all ? 0 : protocol.sample;
    // A recording is compared with a right one.
    search.shorten = search.record || program.lines == 0 ? 0 : 100;
    search.progress = [&](const Progress& now) {
        tell(fmt::format(
            "{}: {} executions in {:.0f} s, of perhaps {:.0f} in {:.0f} s; at most {} s",
            protocol.name, now.executions, now.seconds,
            static_cast<double>(now.executions) / now.part, now.seconds / now.part, limit));
    };
    Report report;
    try {
        report = explore(search, protocol.setup);
    } catch (const std::exception& error) {  // the scene is invalid
        report.failed = true;
        report.why = error.what();
    }
    tell("");
    print(fmt::format("{:<24} {:<9} {:>7} {:>11} {:>8.2f}  {}", protocol.name,
                      may_give_up ? "give up" : "end", report.threads, report.executions,
                      report.seconds,
                      report.failed      ? "WRONG"
                      : report.exhausted ? "exhausted"
                                         : report.why));
    const std::string json = as_json(report, protocol.name, may_give_up, program.lines);
    course::describe(json);
    course::tell(search_name(protocol, may_give_up), !report.failed);
    for (const std::string& file : {program.json, program.record}) {
        if (!file.empty() && !(std::ofstream(file, std::ios::app) << json << std::endl)) {
            throw std::runtime_error(fmt::format("cannot write to {}", file));
        }
    }
    if (report.failed) {
        print(fmt::format("\n{}\n", fmt::join(counterexample(report, program.lines), "\n")));
    }
    return !report.failed;
}

int explore_protocols(int argc, char** argv, const std::vector<Protocol>& protocols) {
    CLI::App app(
        "Explores protocols: every order of their threads, and every value that a load may "
        "return.\nExit status: 0 if nothing was wrong, 1 if something was, 2 for bad usage.");
    constexpr std::uint64_t kMost = 1'000'000'000'000;
    ProgramOptions program;
    app.add_option("protocol", program.names,
                   "Only protocols whose names begin with this; default: all");
    add_number_option(app, "--lines", program.lines, std::size_t{0}, std::size_t{kMost},
                      "Print at most this many steps of a failing execution");
    add_number_option(app, "--seconds", program.search.seconds, 0.001, 1e6,
                      "Stop each search after this many seconds of processor time");
    add_number_option(app, "--executions", program.search.most_executions, std::uint64_t{1}, kMost,
                      "Stop each search after this many executions");
    app.add_option("--json", program.json,
                   "Append the results to a file, one line of JSON per search, with the steps of a "
                   "failing execution");
    app.add_option("--record", program.record,
                   "The same, with the steps of the first execution where none fails");
    std::string kernel_end = "fence";
    app.add_option("--kernel-end", kernel_end,
                   "`nothing`: the end of a kernel publishes nothing to other ranks; default: "
                   "`fence`, as docs/EXPLORE.md explains")
        ->check(CLI::IsMember({"fence", "nothing"}));
    app.add_flag("--compare", program.compare,
                 "Search without reduction, with sleep sets and with source sets, and compare the "
                 "executions visited");
    app.add_flag("--all", program.all,
                 "Visit all executions also where there are so many that others are random ones");
    app.add_flag("--go-on", program.go_on, "Go on with the next search after a failure");
    app.add_flag("--list", program.list, "List the protocols' names");
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success&) {
        print(app.help());
        return kExitRight;
    }
    program.search.kernel_end = kernel_end == "nothing" ? KernelEnd::kNothing : KernelEnd::kFence;
    std::vector<std::string> names;
    std::ranges::transform(protocols, std::back_inserter(names), &Protocol::name);
    if (program.list) {
        print(fmt::format("{}", fmt::join(names, "\n")));
        return kExitRight;
    }
    std::vector<Protocol> chosen;
    for (const std::string& name : program.names) {
        std::ranges::copy_if(protocols, std::back_inserter(chosen),
                             [&](const Protocol& one) { return one.name.starts_with(name); });
    }
    if (chosen.empty()) {
        throw UsageError("there is no protocol '{}': choose one of {}",
                         fmt::join(program.names, " "), fmt::join(names, " "));
    }
    if (!program.json.empty()) {
        require_output_file(program.json, fmt::format("--json {}", program.json));
    }
    if (!program.record.empty()) {
        require_output_file(program.record, fmt::format("--record {}", program.record));
        program.search.record = true;
    }
    print(
        "NAME/2x1x2/x: 2 ranks with 2 blocks of 1 thread, in the variant x. exhausted: every "
        "execution ran.\nwaits: end, each wait ends as its condition comes true; give up, it may "
        "also reach its limit.\n");
    print(program.compare ? fmt::format("{:<24} {:<9} {:>11} {:>9}", "protocol", "waits",
                                        fmt::join(kSearches, " "), "different")
                          : fmt::format("{:<24} {:<9} {:>7} {:>11} {:>8}", "protocol", "waits",
                                        "threads", "executions", "seconds"));
    std::vector<std::pair<Protocol, bool>> searches;  // and whether waits may give up
    for (const Protocol& protocol : chosen) {
        searches.emplace_back(protocol, false);
        if (protocol.may_give_up) {
            searches.emplace_back(protocol, true);
        }
    }
    for (const auto& [protocol, may_give_up] : searches) {
        course::announce(search_name(protocol, may_give_up));
    }
    bool right = true;
    for (const auto& [protocol, may_give_up] : searches) {
        program.search.may_give_up = may_give_up;
        right = (program.compare ? agree(protocol, program) : is_right(protocol, program)) && right;
        if (!right && !program.go_on) {
            return kExitFailed;
        }
    }
    return right ? kExitRight : kExitFailed;
}

}  // namespace

int explore_main(int argc, char** argv, const std::vector<Protocol>& protocols) {
    ignore_file_size_signal();
    try {
        return explore_protocols(argc, argv, protocols);
    } catch (const std::exception& error) {
        const bool is_usage = dynamic_cast<const CLI::ParseError*>(&error) != nullptr ||
                              dynamic_cast<const UsageError*>(&error) != nullptr;
        report_error(error_text(error) +
                     (is_usage ? fmt::format(" (see {} --help)", argv[0]) : ""));
        return is_usage ? kExitUsage : kExitFailed;
    }
}

}  // namespace symm::explore
