// Lab 06: an AllReduce on symmetric memory, with every element checked, and
// compared with NCCL where its library is found.

#include <fmt/core.h>

#include <filesystem>
#include <limits>

#include "common/cli/bytes.hpp"
#include "common/cli/cli.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/environment/environment.hpp"
#include "common/ranks/rank_options.hpp"
#include "labs/06_allreduce/communicator/room.hpp"
#include "labs/06_allreduce/comparison/measure_table.hpp"
#include "labs/06_allreduce/comparison/nccl_comparison.hpp"

namespace {

using namespace symm;

struct Options {
    RankOptions ranks;
    ByteRange sizes{1 << 20, 1 << 20};
    std::size_t factor = 4;  ///< From one size to the next.
    bool in_place = false;
    Algorithm algorithm = Algorithm::kAuto;
    std::string tune;  ///< The file to write; empty: run as usual.
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
        text += fmt::format("   right   {}", describe(measured.plan, rank.size()));
    } else {
        text +=
            fmt::format(" {:>10.1f} {:>9.1f} {:>10} {:>10} {:>10}", measured.ours,
                        rank.size() > 1 ? bus_bandwidth(bytes, rank.size(), measured.ours) : 0.0,
                        optional_time(measured.nccl), optional_time(measured.nccl_symmetric),
                        optional_time(measured.nccl_device));
        if (const auto ratio = measured.ratio()) {
            text += fmt::format(" {:>8.2f}", *ratio);
        }
    }
    rank.headline("{}\n", text);
}

void print_head(const Rank& rank, const Options& options, const NcclComparison& comparison) {
    rank.headline("{}\n", describe_driver());
    rank.headline("AllReduce, {} ranks ({} mode), {}, {}, {}, {}, {} x {} calls per size\n",
                  rank.size(), name_of(rank.mode()), name_of(options.comparison.arithmetic.type),
                  name_of(options.comparison.arithmetic.op),
                  options.in_place ? "in place" : "out of place",
                  options.comparison.graph_launches > 0 ? "in a graph" : "one by one",
                  options.comparison.rounds, options.comparison.iterations);
    rank.headline("NCCL {}\n",
                  comparison.why_no_nccl().empty()
                      ? fmt::format("{}, without NVLink multicast", comparison.nccl_version())
                      : "comparison skipped: " + comparison.why_no_nccl());
    if (!is_emulated() && rank.size() > device_count()) {
        rank.headline(
            "Ranks share a GPU: no data crosses a link, so that times are of kernels and "
            "launches only.\n");
    }
    if (!comparison.why_no_nccl_device().empty()) {
        rank.headline("NCCL's device API is left out: {}\n", comparison.why_no_nccl_device());
    }
    if (is_emulated()) {
        rank.headline("Emulated: results are checked, times would mean nothing.\n\n");
        rank.headline("{:>8} {:>12} {:>9}   {:<7} {}\n", "bytes", "count", "algo", "result",
                      "why this algorithm");
    } else {
        rank.headline(
            "Times in us, the slowest rank's; results are checked after each turn. bus = GB/s = "
            "bytes/time x 2(n-1)/n\n\n");
        rank.headline("{:>8} {:>12} {:>9} {:>10} {:>9} {:>10} {:>10} {:>10} {:>8}\n", "bytes",
                      "count", "algo", "ours", "bus", "NCCL", "NCCL sym", "NCCL dev", "speedup");
    }
}

void run(Rank& rank, const Options& options) {
    require_room(rank, options.comparison.most_bytes, "--bytes");
    Communicator communicator(rank, {.limit = Deadline::standard_limit()});
    if (!options.tune.empty()) {
        rank.headline("{}\n", describe_driver());
        tune(rank, communicator, options.sizes, options.tune);
        return;
    }
    NcclComparison comparison(rank, communicator, options.comparison);
    print_head(rank, options, comparison);
    for (std::size_t bytes = options.sizes.first; bytes <= options.sizes.last;
         bytes *= options.factor) {
        const std::size_t count = bytes / size_of(options.comparison.arithmetic.type);
        print_row(rank, options, count, comparison.run(count, options.in_place, options.algorithm));
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
    bool graph = false;
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
    app.add_option("--algo", algo, "Algorithm: auto, oneshot, sentinel, push, twoshot or copy")
        ->capture_default_str();
    app.add_flag("--inplace", options.in_place, "Input and output are the same buffer");
    app.add_flag("--graph", graph, "Replay the calls as a graph");
    add_number_option(app, "--iters", iterations, 1, 1000,
                      "Calls per turn (default 20; emulated 2)")
        ->default_str("");
    add_number_option(app, "--rounds", options.comparison.rounds, 1, 1000,
                      "Turns of ours and of each of NCCL's paths");
    app.add_flag("--no-nccl", no_nccl, "Do not compare with NCCL");
    CLI::Option* tune =
        add_output_option(app, "--tune", options.tune,
                          "Measure which algorithm is the fastest for which size (--bytes 1K:1G), "
                          "and write the tuner's table into this file");
    for (const char* other : {"--count", "--dtype", "--op", "--algo", "--inplace", "--graph",
                              "--iters", "--rounds", "--no-nccl"}) {
        tune->excludes(app.get_option(other));
    }
    app.footer(
        "Try: 06_allreduce --ranks 4 --mode process --dtype bfloat16 --count 4097\n"
        "     06_allreduce --ranks 8 --bytes 1K:1G --graph      (on a machine with 8 GPUs: the "
        "table with NCCL)\n"
        "     06_allreduce --ranks 2 --bytes 1K:1G --tune my_machine.txt\n"
        "NCCL is found at run time (LD_LIBRARY_PATH), and runs without NVLink's multicast "
        "(NCCL_NVLS_ENABLE=0 is set).\n"
        "SYMM_TIMEOUT is the limit of every wait, in seconds.");
    return run_main(app, argc, argv, [&] {
        options.comparison.arithmetic.type = data_type(dtype);
        options.comparison.arithmetic.op = reduce_op(op);
        options.algorithm = algorithm_named(algo);
        const bool floating_only = is_floating_only(options.algorithm) ||
                                   (options.algorithm == Algorithm::kAuto &&
                                    is_floating_only(TunerOverrides::from_environment().algorithm));
        if (!is_floating(options.comparison.arithmetic.type) && floating_only) {
            throw UsageError(fmt::format("--dtype {}: integers have no sentinel", dtype));
        }
        // Bad tables are told here, once, and not by each rank.
        if (const std::string table = env::text("SYMM_TUNING"); !table.empty()) {
            TuningTable::read(table, "SYMM_TUNING=" + table);
        }
        if (std::filesystem::exists(options.tune)) {
            TuningTable::read(options.tune, "--tune " + options.tune);
        }
        options.comparison.nccl = !no_nccl;
        options.comparison.graph_launches = graph ? 1 : 0;
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
