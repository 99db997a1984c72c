// Lab 02: access to a buffer, from the first right to a buffer that all devices share.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <limits>

#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/bytes.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access_steps.hpp"
#include "labs/02_access/bandwidth.hpp"
#include "labs/02_access/forbidden.hpp"
#include "labs/02_access/multicast_step.hpp"
#include "labs/02_access/peer_check.hpp"

namespace {

using namespace symm;

constexpr const char* kWhatItDoes =
    R"(Lab 02: a buffer on one GPU that every GPU reads and writes.

It tries each pair of devices that the driver calls peers, gives and takes access in every way there
is, and shows in child processes what happens to a kernel without access. All data is compared.
Without a GPU it runs on emulated ones, which can also be faulty (SYMM_EMU_LOSSY=1:0) or no peers
(SYMM_EMU_P2P=0).
)";

struct Options {
    std::size_t size = std::size_t{1} << 20;
    int owner = 0;
    bool bandwidth = false;
    std::size_t bytes = 0;  // 0: measure() chooses
    std::string forbidden;
};

// Returns whether the step's checks passed.
bool print(const StepReport& report) {
    fmt::print("{}: {}\n", report.right ? "right" : "WRONG", report.title);
    for (const std::string& line : report.lines) {
        fmt::print("    {}\n", line);
    }
    return report.right;
}

// Returns the number of broken pairs.
std::size_t check_the_peers(PeerMatrix& matrix, std::span<const Gpu> gpus, std::size_t bytes) {
    const std::size_t tried = matrix.usable_pairs().size();
    const std::vector<Pair> broken = check_peers(matrix, gpus, bytes);
    for (const Pair& pair : broken) {
        fmt::print("BROKEN {}: {}; it will not be used\n", describe(pair),
                   matrix.link(pair).excluded);
    }
    fmt::print("{} pairs tried with stores, loads and copies: {} deliver every word\n{}", tried,
               tried - broken.size(), broken.empty() ? "" : matrix.text());
    return broken.size();
}

void measure(std::span<const Gpu> gpus, const PeerMatrix& matrix, std::size_t asked) {
    const std::size_t standard = is_emulated() ? std::size_t{64} << 10 : std::size_t{512} << 20;
    const std::size_t bytes = asked == 0 ? standard : round_up(asked, 16);
    const int iterations = is_emulated() ? 2 : 16;
    fmt::print("{} per transfer, {} times; every word that arrived is compared\n{}{}",
               format_bytes(bytes), iterations,
               is_emulated() ? "(emulated GPUs: the times mean nothing)\n" : "",
               measure_links(gpus, matrix, bytes, iterations));
}

int run(const Options& options) {
    for (const Forbidden& kind : kForbidden) {
        if (kind.name == options.forbidden) {
            run_forbidden(kind);
        }
    }
    if (!options.forbidden.empty()) {
        throw UsageError("{} {}: unknown", kForbiddenOption, options.forbidden);
    }
    const int devices = device_count();
    if (options.owner >= devices) {
        throw UsageError("--owner {}: this machine has {} devices, numbered from 0", options.owner,
                         devices);
    }
    const std::size_t bytes = round_up(options.size, sizeof(std::uint32_t));
    fmt::print("{}\n", describe_driver());
    const std::vector<Gpu> gpus = all_gpus();

    fmt::print("\n1. The peer matrix: which device can access which memory\n");
    PeerMatrix matrix = PeerMatrix::query();
    fmt::print("{}perf: the driver's PERFORMANCE_RANK of the link, 0 for the fastest kind\n",
               matrix.text());
    fmt::print("\n2. Self-test: does data arrive between the two devices of each pair?\n");
    const std::size_t broken = check_the_peers(matrix, gpus, bytes);

    fmt::print("\n3. Access given and taken\n");
    const StepContext context{gpus, matrix, options.owner, bytes};
    bool right = true;
    for (const AccessStep& step : kAccessSteps) {
        right = print(step(context)) && right;
    }
    fmt::print("\n4. Multicast\n");
    right = print(show_multicast(context)) && right;
    fmt::print("\n5. What is forbidden\n");
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    right = print(show_all_forbidden(self, context)) && right;
    if (options.bandwidth) {
        fmt::print("\n6. Bandwidth and latency\n");
        measure(gpus, matrix, options.bytes);
    }
    fmt::print("\n{}{}\n", right ? "All checks passed" : "SOME CHECKS FAILED, see above",
               broken == 0 ? "" : fmt::format("; {} broken pair(s) not used", broken));
    return right ? kExitRight : kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app(kWhatItDoes, "02_access");
    const auto not_zero = [](const std::string& text) {
        return parse_bytes(text) == 0 ? "give a size greater than 0, such as 1M" : "";
    };
    add_bytes_option(app, "--size", options.size, "Size of the data in each step's buffer")
        ->check(not_zero);
    add_number_option(app, "--owner", options.owner, 0, std::numeric_limits<int>::max(),
                      "The device whose memory is shared");
    CLI::Option* bandwidth =
        app.add_flag("--bandwidth", options.bandwidth,
                     "Measure loads, stores, the copy engine and the latency of every pair");
    add_bytes_option(app, "--bytes", options.bytes,
                     "Size of each measured transfer (512M on a GPU, 64K emulated)")
        ->default_str("")
        ->check(not_zero)
        ->needs(bandwidth);
    app.add_option(std::string(kForbiddenOption), options.forbidden)->group("");
    return run_main(app, argc, argv, [&] { return run(options); });
}
