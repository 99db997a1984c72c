// Lab 02: who may access a buffer, from the first right to a buffer that all devices share.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "common/cli/bytes.hpp"
#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access_steps.hpp"
#include "labs/02_access/bandwidth.hpp"
#include "labs/02_access/forbidden.hpp"
#include "labs/02_access/peer_check.hpp"

namespace {

constexpr const char* kWhatItDoes =
    R"(Lab 02: a buffer on one GPU that every GPU reads and writes.

It asks the driver which device can use whose memory (the peer matrix), tries each
pair with real data, gives and takes access in every way there is, and shows in child
processes what happens to a kernel without access. All data is compared; the exit
status is 0 only if all of it was right.

  02_access                          all of this
  02_access --size 64M --owner 1     with more memory, on device 1
  02_access --bandwidth              and how fast every pair is

Without a GPU it runs on emulated ones, which can also be broken:
  SYMM_EMU_LOSSY=1:0 02_access       device 1's writes to device 0 are lost
  SYMM_EMU_P2P=0 02_access           no peer access at all
)";

struct Options {
    std::size_t size = std::size_t{1} << 20;
    int owner = 0;
    bool bandwidth = false;
    std::size_t bytes = 0;  // 0: as measure() says
    int iterations = 0;
    std::string forbidden;
};

void title(int number, std::string_view text) {
    fmt::print("\n{}. {}\n", number, text);
    std::fflush(stdout);
}

void print(const symm::StepReport& report) {
    fmt::print("{}: {}\n", report.right ? "right" : "WRONG", report.title);
    for (const std::string& line : report.lines) {
        fmt::print("    {}\n", line);
    }
}

void check_the_peers(symm::PeerMatrix& matrix, std::span<const symm::Gpu> gpus, std::size_t bytes) {
    const auto reports = symm::check_peers(matrix, gpus, bytes);
    for (const symm::PeerReport& report : reports) {
        if (!report.right()) {
            fmt::print("BROKEN {}: {}; it will not be used\n", describe(report.pair),
                       report.failure);
        }
    }
    const std::size_t broken = matrix.excluded_pairs().size();
    fmt::print("{} pairs tried with stores, loads and copies: {} deliver every word\n",
               reports.size(), reports.size() - broken);
    if (broken != 0) {
        fmt::print("{}", matrix.text());
    }
}

void measure(std::span<const symm::Gpu> gpus, const symm::PeerMatrix& matrix,
             const Options& options) {
    const bool emulated = symm::is_emulated();
    const std::size_t standard = emulated ? std::size_t{64} << 10 : std::size_t{512} << 20;
    const std::size_t bytes = options.bytes == 0 ? standard : symm::round_up(options.bytes, 16);
    const int iterations = options.iterations != 0 ? options.iterations : emulated ? 2 : 16;
    fmt::print("{} per transfer, {} times; every word that arrived is compared\n{}{}",
               symm::format_bytes(bytes), iterations,
               emulated ? "(emulated GPUs: the times mean nothing)\n" : "",
               table_of(symm::measure_links(gpus, matrix, bytes, iterations)));
}

int run(const Options& options) {
    for (const symm::Forbidden& kind : symm::kForbidden) {
        if (kind.name == options.forbidden) {
            symm::run_forbidden(kind);
        }
    }
    const int devices = symm::device_count();
    if (options.owner >= devices) {
        throw symm::UsageError(fmt::format(
            "--owner {}: this machine has {} devices, numbered from 0", options.owner, devices));
    }
    const std::size_t bytes = symm::round_up(options.size, sizeof(std::uint32_t));
    fmt::print("{}\n", symm::describe_driver());
    const std::vector<symm::Gpu> gpus = symm::all_gpus();

    title(1, "The peer matrix: which device can use whose memory");
    symm::PeerMatrix matrix = symm::PeerMatrix::query();
    fmt::print("{}perf: the driver's PERFORMANCE_RANK of the link, 0 for the fastest kind\n",
               matrix.text());
    title(2, "Self-test: does data arrive between the two devices of each pair?");
    check_the_peers(matrix, gpus, bytes);

    title(3, "Access given and taken");
    const symm::StepContext context{gpus, matrix, options.owner, bytes};
    bool right = run_access_steps(context, print);
    title(4, "What is forbidden");
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const symm::StepReport forbidden = show_all_forbidden(self, context);
    print(forbidden);
    right = right && forbidden.right;
    if (options.bandwidth) {
        title(5, "Bandwidth and latency");
        measure(gpus, matrix, options);
    }
    const std::size_t broken = matrix.excluded_pairs().size();
    fmt::print("\n{}{}\n", right ? "all checked and right" : "NOT ALL WAS RIGHT, see above",
               broken == 0 ? "" : fmt::format("; {} broken pair(s) not used", broken));
    return right ? symm::kExitRight : symm::kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app(kWhatItDoes, "02_access");
    const auto not_zero = [](const std::string& text) {
        return symm::parse_bytes(text) == 0 ? "give a size greater than 0, such as 1M" : "";
    };
    symm::add_bytes_option(app, "--size", options.size, "Data in each buffer of the steps")
        ->check(not_zero);
    symm::add_number_option(app, "--owner", options.owner, 0, std::numeric_limits<int>::max(),
                            "The device whose memory is shared");
    CLI::Option* bandwidth =
        app.add_flag("--bandwidth", options.bandwidth,
                     "Measure loads, stores, the copy engine and the latency of every pair");
    symm::add_bytes_option(app, "--bytes", options.bytes,
                           "Size of each measured transfer (512M on a GPU, 64K emulated)")
        ->default_str("")
        ->check(not_zero)
        ->needs(bandwidth);
    symm::add_number_option(
        app, "--iterations", options.iterations, 1, 100000,
        "How often each transfer is repeated in one timing (16 on a GPU, 2 emulated)")
        ->default_str("")
        ->needs(bandwidth);
    std::vector<std::string> kinds;
    for (const symm::Forbidden& kind : symm::kForbidden) {
        kinds.emplace_back(kind.name);
    }
    app.add_option(std::string(symm::kForbiddenOption), options.forbidden)
        ->check(CLI::IsMember(kinds))
        ->group("");
    return symm::run_main(app, argc, argv, [&] { return run(options); });
}
