// README.md's model of when three steps are faster than rings, for given links.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/cli/cli.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/print.hpp"
#include "common/sys/system_error.hpp"

namespace {

using namespace symm;

/// A rank's link: latency in microseconds, bandwidth in GB/s.
struct Link {
    double latency;
    double bandwidth;

    double time(double bytes) const { return bytes / (bandwidth * 1e3); }
};

struct Model {
    double ranks;
    double machines;
    Link inside;
    Link across;

    double three_steps(double bytes) const {
        const double part = bytes / ranks;
        const double tree = 2 * std::log2(machines) * across.latency + across.time(2 * part);
        const double ring =
            2 * (machines - 1) * across.latency + across.time(2 * part * (machines - 1) / machines);
        return 2 * inside.latency + inside.time(2 * bytes * (ranks - 1) / ranks) +
               std::min(tree, ring);
    }
    /// One ring per network card, each with its share of the bytes. A byte goes around twice.
    double rings(double bytes) const {
        const double all = ranks * machines;
        const double share = bytes * (all - 1) / all;
        return 2 * machines * ((ranks - 1) * inside.latency + across.latency) +
               std::max(across.time(2 * share / ranks), inside.time(2 * share));
    }
};

Link link_of(const std::vector<double>& values, const char* option) {
    if (values.size() != 2 || values[0] <= 0 || values[1] <= 0) {
        throw UsageError("{}: pass a latency in us and a bandwidth in GB/s, as in 5,45", option);
    }
    return {values[0], values[1]};
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "A model, not a measurement, of an AllReduce over machines in three steps, or by rings.",
        "06_allreduce_model");
    int ranks = 8;
    int machines = 4;
    std::vector<double> inside{1.5, 370};
    std::vector<double> across{5, 45};
    std::string sizes = "1K:1G";
    add_number_option(app, "--ranks", ranks, 1, 1024, "Ranks per machine");
    add_number_option(app, "--machines", machines, 2, 65536, "Machines");
    app.add_option("--inside", inside, "Latency in us and GB/s between ranks of a machine")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--across", across, "The same between machines, for each rank")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--bytes", sizes, "A size, or a range")->capture_default_str();
    return run_main(app, argc, argv, [&] {
        const Model model{static_cast<double>(ranks), static_cast<double>(machines),
                          link_of(inside, "--inside"), link_of(across, "--across")};
        const ByteRange range = parse_byte_range("--bytes", sizes);
        std::string table = fmt::format("{:>8} {:>14} {:>12} {:>8}   (a model, in us)\n", "bytes",
                                        "three steps", "rings", "ratio");
        for (std::size_t bytes = range.first; bytes <= range.last; bytes *= 4) {
            const double steps = model.three_steps(static_cast<double>(bytes));
            const double ring = model.rings(static_cast<double>(bytes));
            table += fmt::format("{:>8} {:>14.1f} {:>12.1f} {:>8.2f}\n", format_bytes(bytes), steps,
                                 ring, ring / steps);
        }
        if (!print_lines(STDOUT_FILENO, "", table)) {
            throw_errno("cannot write to stdout");
        }
        return kExitRight;
    });
}
