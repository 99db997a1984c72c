// 02_access: who may touch a buffer, from the first right to a buffer that all devices share.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "common/cli/bytes.hpp"
#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/output_file.hpp"
#include "labs/02_access/access_steps.hpp"
#include "labs/02_access/bandwidth.hpp"
#include "labs/02_access/forbidden.hpp"
#include "labs/02_access/peer_check.hpp"
#include "labs/02_access/shared_sum.hpp"

namespace {

constexpr const char* kWhatItDoes =
    R"(Lab 02: a buffer on one GPU that every GPU reads and writes.

It asks the driver which device may use whose memory (the peer matrix), tries each
pair with real data, gives and takes access in every way there is, shows in a child
process what happens to a kernel without access, and ends with one buffer that all
devices fill and sum. Everything is compared; the exit code is 0 only if all was right.

  02_access                          the whole story
  02_access --size 64M --owner 1     with more memory, on device 1
  02_access --bandwidth              and how fast every pair is
  02_access --bandwidth --bytes 512M --json peers.json --svg peers.svg

Without a GPU it runs on emulated ones. Try the same on a broken machine:
  SYMM_EMU_LOSSY=1:0 02_access       device 1's writes to device 0 are lost
  SYMM_EMU_P2P=0 02_access           no peer access at all
)";

struct Options {
    std::size_t size = std::size_t{1} << 20;
    int owner = 0;
    bool bandwidth = false;
    symm::BandwidthOptions transfers;
    bool bytes_given = false;
    std::string json;
    std::string svg;
    std::string forbidden;
};

struct OutputFiles {
    symm::OutputFile json;
    symm::OutputFile svg;
};

void require_usable(const Options& options) {
    if (options.size == 0 || options.size % 4 != 0) {
        throw symm::UsageError(fmt::format(
            "--size {} cannot be: give a multiple of 4 greater than 0, such as 1M", options.size));
    }
    if (!options.bandwidth && (!options.json.empty() || !options.svg.empty() ||
                               options.bytes_given || options.transfers.iterations != 0)) {
        throw symm::UsageError("--bytes, --iterations, --json and --svg belong to --bandwidth");
    }
    if (symm::are_one_file(options.json, options.svg)) {
        throw symm::UsageError(fmt::format("--json {} and --svg {} are one file: give two",
                                           options.json, options.svg));
    }
    const int devices = symm::device_count();
    // In the all-to-all matrix each pair has its part of a transfer, whole vectors of 16 bytes.
    const std::size_t least = devices < 2 ? 4 : 16 * static_cast<std::size_t>(devices);
    if (options.bytes_given &&
        (options.transfers.bytes % 4 != 0 || options.transfers.bytes < least)) {
        throw symm::UsageError(fmt::format(
            "--bytes {} cannot be: give a multiple of 4, at least {} for {} devices, such as 512M",
            options.transfers.bytes, least, devices));
    }
    if (options.owner >= devices) {
        throw symm::UsageError(
            fmt::format("--owner {} cannot be: this machine has {} device{}, "
                        "numbered from 0",
                        options.owner, devices, devices == 1 ? "" : "s"));
    }
}

void require_room(const Options& options, const symm::Gpu& gpu) {
    const std::size_t total = gpu.device().total_memory();
    for (const auto& [name, bytes] :
         {std::pair("--size", options.size), std::pair("--bytes", options.transfers.bytes)}) {
        if (bytes > total / 3) {  // two buffers of each stand at once
            throw symm::UsageError(
                fmt::format("{} {} is too much: device {} has {} bytes, give at "
                            "most a third of them",
                            name, symm::format_bytes(bytes), gpu.ordinal(), total));
        }
    }
}

/// The part of the story with a number and a title.
void title(int number, const std::string& text) {
    fmt::print("\n{}. {}\n", number, text);
    std::fflush(stdout);  // what a child says comes after it
}

void check_the_peers(symm::PeerMatrix& matrix, std::span<const symm::Gpu> gpus, std::size_t bytes) {
    title(2, "Self-test: what each pair really carries");
    const auto reports = symm::check_peers(matrix, gpus, bytes);
    for (const symm::PeerReport& report : reports) {
        if (!report.right()) {
            fmt::print("BROKEN {}: {}; it will not be used\n", describe(report.pair),
                       report.failure);
        }
    }
    const std::size_t broken = matrix.excluded_pairs().size();
    fmt::print("{} pairs tried with stores, loads and copies: {} carry every word\n",
               reports.size(), reports.size() - broken);
    if (broken != 0) {
        fmt::print("{}", matrix.text());
    }
}

bool tell_the_steps(const symm::StepContext& context) {
    title(3, "Access given and taken");
    return run_access_steps(context, [](const symm::StepReport& report) {
        fmt::print("{}: {}\n", report.right ? "right" : "WRONG", report.title);
        for (const std::string& line : report.lines) {
            fmt::print("    {}\n", line);
        }
    });
}

bool show_the_forbidden(std::span<const symm::Gpu> gpus, const symm::PeerMatrix& matrix,
                        const Options& options) {
    title(4, "A kernel without access, in a child process");
    const symm::Bystander bystander(gpus, matrix, options.owner, options.size);
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    bool as_expected = true;
    for (const symm::Forbidden kind : symm::all_forbidden()) {
        const symm::ForbiddenReport report = symm::show_forbidden(self, kind);
        fmt::print("{}{}:\n    {}\n    then {}\n",
                   report.as_expected() ? "" : "WRONG: ", name_of(kind), report.first, report.next);
        as_expected = as_expected && report.as_expected();
    }
    const std::vector<std::string> complaints = bystander.complaints();
    for (const std::string& complaint : complaints) {
        fmt::print("WRONG: what was written before has changed, {}\n", complaint);
    }
    if (complaints.empty()) {
        fmt::print("this process goes on: devices {} find what was written before as it was\n",
                   fmt::join(bystander.buffer().users(), " "));
    }
    return as_expected && complaints.empty();
}

bool share_one_buffer(std::span<const symm::Gpu> gpus, const symm::PeerMatrix& matrix,
                      const Options& options) {
    title(5,
          fmt::format("One buffer of device {} that every device writes and reads", options.owner));
    const symm::SharedSum result = sum_shared_buffer(gpus, matrix, options.owner, options.size);
    for (std::size_t i = 0; i < result.devices.size(); ++i) {
        fmt::print("device {} wrote its stripe and sums the whole to {}{}\n", result.devices[i],
                   result.sums[i], result.sums[i] == result.expected ? "" : " WRONG");
    }
    fmt::print("expected {}: {}\n", result.expected, result.right() ? "all equal" : "NOT EQUAL");
    return result.right();
}

void measure_bandwidth(std::span<const symm::Gpu> gpus, const symm::PeerMatrix& matrix,
                       const Options& options, OutputFiles& files) {
    title(6, "Bandwidth and latency");
    if (matrix.usable_pairs().empty()) {
        fmt::print("no two devices may use each other's memory: only latency to the own\n");
    }
    const symm::PeerMeasurement measurement =
        measure_all(gpus, matrix, options.transfers,
                    [](const std::string& name) { fmt::print(stderr, "measuring {}\n", name); });
    fmt::print("{}every transfer's result was compared\n", to_text(measurement));
    if (files.json) {
        files.json.write(to_json(measurement));
    }
    if (files.svg) {
        files.svg.write(to_svg(measurement));
    }
}

int run(const Options& options) {
    if (!options.forbidden.empty()) {
        return symm::commit_forbidden(symm::forbidden_from(options.forbidden));
    }
    require_usable(options);
    OutputFiles files{symm::OutputFile(options.json), symm::OutputFile(options.svg)};
    fmt::print("{}\n", symm::describe_driver());
    const std::vector<symm::Gpu> gpus = symm::all_gpus();
    require_room(options, gpus[static_cast<std::size_t>(options.owner)]);

    title(1, "The peer matrix: who may use whose memory");
    symm::PeerMatrix matrix = symm::PeerMatrix::query();
    fmt::print("{}", matrix.text());

    check_the_peers(matrix, gpus, options.size);
    bool right = tell_the_steps({gpus, matrix, options.owner, options.size});
    right = show_the_forbidden(gpus, matrix, options) && right;
    right = share_one_buffer(gpus, matrix, options) && right;
    if (options.bandwidth) {
        measure_bandwidth(gpus, matrix, options, files);
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
    symm::add_driver_option(app);
    symm::add_bytes_option(app, "--size", options.size, "Data in each buffer of the story");
    symm::add_number_option(app, "--owner", options.owner, 0, std::numeric_limits<int>::max(),
                            "The device whose memory is shared");
    app.add_flag("--bandwidth", options.bandwidth,
                 "Measure loads, stores and the copy engine between all pairs");
    const CLI::Option* bytes =
        symm::add_bytes_option(app, "--bytes", options.transfers.bytes,
                               "Size of each measured transfer (512M on a GPU, 64K emulated)")
            ->default_str("");
    symm::add_number_option(
        app, "--iterations", options.transfers.iterations, 1, 100000,
        "How often each transfer is repeated in one timing (16 on a GPU, 2 emulated)")
        ->default_str("");
    app.add_option("--json", options.json, "Write the matrices to this file")->type_name("FILE");
    app.add_option("--svg", options.svg, "Draw the matrices as heat maps into this file")
        ->type_name("FILE");
    app.add_option(std::string(symm::kForbiddenOption), options.forbidden)->group("");
    return symm::run_main(app, argc, argv, [&] {
        options.bytes_given = bytes->count() != 0;  // 0 is no size, and the default's mark
        return run(options);
    });
}
