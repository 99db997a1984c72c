// Lab 06: an AllReduce on symmetric memory, with every element checked, and
// compared with NCCL where its library is found.

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "common/cli/bytes.hpp"
#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/rank_options.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/06_allreduce/nccl_comparison.hpp"

namespace {

using namespace symm;

struct Options {
    RankOptions ranks;
    ByteRange sizes{1 << 20, 1 << 20};
    std::size_t factor = 4;  ///< From one size to the next.
    ComparisonOptions comparison;
};

std::string optional_time(const std::optional<double>& time) {
    return time ? fmt::format("{:.1f}", *time) : "-";
}

void print_row(const Rank& rank, const Options& options, std::size_t count,
               const Measured& measured) {
    const std::size_t bytes = count * size_of(options.comparison.arithmetic.type);
    std::string text = fmt::format("{:>8} {:>12} {:>9}", format_bytes(bytes), count,
                                   name_of(measured.plan.algorithm));
    if (is_emulated()) {
        text += fmt::format(
            "   right   {}",
            describe(measured.plan.reason, options.comparison.arithmetic.type, rank.size()));
    } else {
        text +=
            fmt::format(" {:>10.1f} {:>9.1f} {:>10} {:>10}", measured.ours,
                        rank.size() > 1 ? bus_bandwidth(bytes, rank.size(), measured.ours) : 0.0,
                        optional_time(measured.nccl), optional_time(measured.nccl_symmetric));
        if (measured.nccl) {
            const double best =
                std::min(*measured.nccl, measured.nccl_symmetric.value_or(*measured.nccl));
            text += fmt::format(" {:>8.2f}", best / measured.ours);
        }
    }
    rank.headline("{}\n", text);
}

void print_head(const Rank& rank, const Options& options, const NcclComparison& comparison) {
    rank.headline("{}\n", describe_driver());
    rank.headline("AllReduce, {} ranks ({} mode), {}, {}, {}, {}, {} x {} calls per size\n",
                  rank.size(), name_of(rank.mode()), name_of(options.comparison.arithmetic.type),
                  name_of(options.comparison.arithmetic.op),
                  options.comparison.in_place ? "in place" : "out of place",
                  options.comparison.graph ? "in a graph" : "one by one", options.comparison.rounds,
                  options.comparison.iterations);
    rank.headline("NCCL {}\n",
                  comparison.why_no_nccl().empty()
                      ? fmt::format("{}, without NVLink multicast", comparison.nccl_version())
                      : "comparison skipped: " + comparison.why_no_nccl());
    if (is_emulated()) {
        rank.headline("Emulated: results are checked, times would mean nothing.\n\n");
        rank.headline("{:>8} {:>12} {:>9}   {:<7} {}\n", "bytes", "count", "algo", "result",
                      "why this algorithm");
    } else {
        rank.headline(
            "Times in us, the slowest rank's; results are checked after each turn. bus = GB/s = "
            "bytes/time x 2(n-1)/n\n\n");
        rank.headline("{:>8} {:>12} {:>9} {:>10} {:>9} {:>10} {:>10} {:>8}\n", "bytes", "count",
                      "algo", "ours", "bus", "NCCL", "NCCL sym", "speedup");
    }
}

/// Refuses what cannot fit into the devices' memory, before anything is made.
void require_room(const Rank& rank, const Options& options) {
    const std::size_t buffers = options.comparison.in_place ? 1 : 2;
    const std::size_t memory = rank.gpu().total_memory();
    const std::size_t part = memory / static_cast<std::size_t>(rank.most_on_a_device());
    const std::size_t unit = granularity(device_memory(rank.device()));
    // One unit more for what is small: words that kernels set, and the result check's report.
    const std::size_t state = round_up(Communicator::state_bytes(rank.size()), unit) +
                              round_up(TwoShotCopy::scratch_bytes(), unit) + unit;
    const std::size_t most = part > state ? (part - state) / buffers / unit * unit : 0;
    if (most == 0) {
        throw UsageError(
            fmt::format("the {} of device {} have no room for an AllReduce of {} ranks",
                        format_bytes(memory), rank.device(), rank.size()));
    }
    if (options.comparison.most_bytes > most) {
        throw UsageError(
            fmt::format("{} buffer(s) of {} are more than a rank's part of the {} of device {}: "
                        "say --bytes {} or less",
                        buffers, format_bytes(options.comparison.most_bytes), format_bytes(memory),
                        rank.device(), format_bytes(most)));
    }
}

void run(Rank& rank, const Options& options) {
    require_room(rank, options);
    Communicator communicator(rank);
    NcclComparison comparison(rank, communicator, options.comparison);
    print_head(rank, options, comparison);
    for (std::size_t bytes = options.sizes.first; bytes <= options.sizes.last;
         bytes *= options.factor) {
        const std::size_t count = bytes / size_of(options.comparison.arithmetic.type);
        print_row(rank, options, count, comparison.run(count));
    }
    rank.headline("\nAll results are right.\n");
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "AllReduce on symmetric memory: every rank ends with the sum of all ranks' inputs.",
        "06_allreduce");
    Options options;
    std::string bytes = "1M";
    std::string dtype = "float";
    std::string op = "sum";
    std::string algo = "auto";
    std::size_t count = 0;
    bool no_nccl = false;
    int iterations = 0;
    add_rank_options(app, options.ranks, kMaxAllReduceRanks);
    auto* bytes_option =
        app.add_option("--bytes", bytes, "Size of a buffer, such as 64K, or a range, such as 1K:1G")
            ->capture_default_str();
    add_number_option<std::size_t>(app, "--factor", options.factor, 2, 1024,
                                   "Factor from one size of a range to the next");
    add_number_option<std::size_t>(app, "--count", count, 1,
                                   std::numeric_limits<std::size_t>::max(),
                                   "Elements instead of bytes, at least 1")
        ->default_str("")
        ->excludes(bytes_option);
    app.add_option("--dtype", dtype,
                   "Type: float, half, bfloat16, double, int8, uint8, int32, uint32, int64, uint64")
        ->capture_default_str();
    app.add_option("--op", op, "Operation: sum, prod, min, max or avg")->capture_default_str();
    app.add_option("--algo", algo, "Algorithm: auto, oneshot, sentinel, twoshot or copy")
        ->capture_default_str();
    app.add_flag("--inplace", options.comparison.in_place, "Input and output are the same buffer");
    app.add_flag("--graph", options.comparison.graph, "Replay the calls as a graph");
    add_number_option(app, "--iters", iterations, 1, 1000,
                      "Calls per turn (default 20; emulated 2)")
        ->default_str("");
    add_number_option(app, "--rounds", options.comparison.rounds, 1, 1000,
                      "Turns of ours and of each of NCCL's paths");
    app.add_flag("--no-nccl", no_nccl, "Do not compare with NCCL");
    app.footer(
        "Try: 06_allreduce --ranks 4 --mode process --dtype bfloat16 --count 4097\n"
        "     06_allreduce --ranks 8 --bytes 1K:1G --graph      (on a machine with 8 GPUs: the "
        "table with NCCL)\n"
        "NCCL is found at run time (LD_LIBRARY_PATH), and runs without NVLink's multicast "
        "(NCCL_NVLS_ENABLE=0 is set).\n"
        "SYMM_TIMEOUT is the limit of every wait, in seconds.");
    return run_main(app, argc, argv, [&] {
        options.comparison.arithmetic.type = data_type(dtype);
        options.comparison.arithmetic.op = reduce_op(op);
        if (!is_floating(options.comparison.arithmetic.type) &&
            algorithm_named(algo) == Algorithm::kSentinel) {
            throw UsageError(fmt::format("--dtype {}: integers have no sentinel", dtype));
        }
        options.comparison.algorithm = algorithm_named(algo);
        options.comparison.nccl = !no_nccl;
        options.sizes = parse_byte_range("--bytes", bytes);
        if (options.sizes.first % size_of(options.comparison.arithmetic.type) != 0) {
            throw UsageError(fmt::format("--bytes {} is no whole number of {}s of {} bytes each",
                                         bytes, dtype,
                                         size_of(options.comparison.arithmetic.type)));
        }
        if (app.count("--count") != 0) {
            if (count > (std::size_t{1} << 60) / size_of(options.comparison.arithmetic.type)) {
                throw UsageError(fmt::format("--count {} is more than any machine holds", count));
            }
            options.sizes.first = options.sizes.last =
                count * size_of(options.comparison.arithmetic.type);
        }
        options.comparison.iterations = iterations != 0 ? iterations : is_emulated() ? 2 : 20;
        if (is_emulated() && app.count("--rounds") == 0) {
            options.comparison.rounds = 1;
        }
        options.comparison.most_bytes = options.sizes.last;
        return run_ranks(options.ranks, [&](Rank& rank) { run(rank, options); });
    });
}
