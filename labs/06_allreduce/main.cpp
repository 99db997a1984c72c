// Lab 06: an AllReduce on symmetric memory. Shows each step of a program that makes one, and checks
// every element of the result.

#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <stdexcept>

#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/process.hpp"
#include "labs/05_device_prims/reduction/result_check.hpp"
#include "labs/06_allreduce/algorithms/ladder/ladder_command.hpp"
#include "labs/06_allreduce/algorithms/loaded/loaded.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "labs/06_allreduce/communicator/memory_budget.hpp"
#include "symm/nodes/node_calls.hpp"

namespace {

using namespace symm;

struct Options {
    RankOptions ranks;
    Arithmetic arithmetic;
    ByteRange sizes{1 << 20, 1 << 20};
    std::size_t factor = 4;  ///< From one size to the next.
    std::size_t count = 0;   ///< Elements, instead of sizes.
    Algorithm algorithm = Algorithm::kAuto;
    bool in_place = false;
    int nodes = 1;
};

/// `--show`: a program of its own records a call, and a script draws it (tools/show/README.md).
/// Returns its exit code.
int show([[maybe_unused]] const std::vector<std::string>& options) {
#ifdef SYMM_SHOW
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    std::vector<std::string> command{"python3", "-B", SYMM_SHOW, self + "_record"};
    command.insert(command.end(), options.begin(), options.end());
    Process process({.arguments = command});
    const std::optional<ExitStatus> ended = process.wait(Deadline::standard());
    if (!ended || ended->signal != 0) {
        throw std::runtime_error(
            fmt::format("--show: {} {}", command[2], ended ? ended->describe() : "has not ended"));
    }
    return ended->code;
#else
    throw UsageError("--show needs a build by g++ without sanitizers: use --preset emulated");
#endif
}

void run(Rank& rank, const Options& options) {
    const auto [type, op, collective, root] = options.arithmetic;
    const std::size_t unit = size_of(type) * options.arithmetic.parts(rank.size());
    const ByteRange sizes =
        options.count != 0 ? ByteRange{options.count * unit, options.count * unit} : options.sizes;
    if (sizes.first < unit) {
        throw UsageError("--bytes {} is less than one element for each of {} ranks",
                         format_bytes(sizes.first), rank.size());
    }
    require_memory(rank, sizes.last, "--bytes");
    Communicator communicator(rank, {.limit = Deadline::standard_limit()});
    const CUdeviceptr in = communicator.allocate(sizes.last);
    const CUdeviceptr out = options.in_place ? in : communicator.allocate(sizes.last);
    const Stream stream;
    Verifier verifier(rank.rank(), rank.size());

    rank.headline("{}\n{}, {} ranks ({} mode), {}, {}, {}\n\n", describe_driver(),
                  row_of(collective).title, rank.size(), name_of(rank.mode()), name_of(type),
                  name_of(op), options.in_place ? "in place" : "out of place");
    rank.headline("{:>8} {:>12} {:>9}   {:<7} {}\n", "bytes", "count", "algo", "result",
                  "why this algorithm");
    for (std::size_t bytes = sizes.first; bytes <= sizes.last; bytes *= options.factor) {
        const std::size_t count = bytes / unit;
        const auto [from, to] = verifier.places(options.arithmetic, in, out, count);
        Verifier::poison(stream, out, bytes);
        verifier.fill(stream, options.arithmetic, from, count);
        const CallPlan plan = communicator.call({options.arithmetic, from, to, count}, stream.get(),
                                                options.algorithm);
        communicator.synchronize(stream, "the call");
        rank.bootstrap().together(
            "result", [&, to = to] { verifier.check(stream, options.arithmetic, to, count); });
        rank.headline("{:>8} {:>12} {:>9}   right   {}\n", format_bytes(count * unit), count,
                      name_of(plan.algorithm), describe(plan, rank.size()));
    }
    rank.headline("\nAll results are right.\n");
}

/// Reports some mistakes once, before each rank would report them.
void require_possible(const Options& options) {
    const auto [type, op, collective, root] = options.arithmetic;
    const Algorithm wanted = options.algorithm == Algorithm::kAuto
                                 ? TunerOverrides::from_environment().algorithm
                                 : options.algorithm;
    const AlgorithmRow* row = find_row(collective, wanted);
    if (row == nullptr && options.algorithm != Algorithm::kAuto) {
        throw UsageError("--collective {} supports {}, not {}", name_of(collective),
                         alternatives(collective), name_of(wanted));
    }
    if (row != nullptr && row->needs.floating_only && !is_floating(type)) {
        throw UsageError("--dtype {}: integers have no sentinel", name_of(type));
    }
    if (row != nullptr && !row->supports(type, op)) {
        throw UsageError("--op {} --dtype {}: no switch makes it", name_of(op), name_of(type));
    }
    if (options.sizes.first % size_of(type) != 0) {
        throw UsageError("--bytes {} is not a multiple of {}, the size of {}",
                         format_bytes(options.sizes.first), size_of(type), name_of(type));
    }
    if (env::is_set("SYMM_TUNING")) {  // else the ranks alone need a driver
        TuningTable::from_environment();
    }
}

/// The same calls over several machines.
NodeCalls calls_of(const Options& options) {
    if (options.arithmetic.collective != Collective::kAllReduce ||
        options.algorithm != Algorithm::kAuto) {
        throw UsageError("--nodes cannot be combined with --collective or --algo");
    }
    const std::size_t bytes = options.count * size_of(options.arithmetic.type);
    return {.arithmetic = options.arithmetic,
            .sizes = bytes != 0 ? ByteRange{bytes, bytes} : options.sizes,
            .factor = options.factor,
            .in_place = options.in_place};
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "AllReduce on symmetric memory: every rank ends with the sum of all ranks' inputs.",
        "06_allreduce");
    Options options;
    std::string bytes = "1M";
    app.preparse_callback([](std::size_t) { load_algorithms(); });  // names for --algo
    add_rank_options(app, options.ranks, kMaxAllReduceRanks);
    auto* bytes_option =
        app.add_option("--bytes", bytes, "Size of a buffer, such as 64K, or a range, such as 1K:1G")
            ->capture_default_str();
    add_number_option<std::size_t>(app, "--factor", options.factor, 2, 1024,
                                   "Factor from one size of a range to the next");
    add_number_option<std::size_t>(app, "--count", options.count, 1,
                                   std::numeric_limits<std::size_t>::max() >> 8,
                                   "Number of elements, instead of --bytes")
        ->default_str("")
        ->excludes(bytes_option);
    auto& [type, op, collective, root] = options.arithmetic;
    add_choice(app, "--dtype", type,
               "Type: float, half, bfloat16, double, int8, uint8, int32, uint32, int64, uint64");
    add_choice(app, "--op", op, "Operation: sum, prod, min, max or avg");
    add_choice(app, "--collective", collective,
               "allreduce, reducescatter, allgather, broadcast or reduce; --bytes is the larger "
               "buffer's size, --count the elements, of a rank's part if there are parts");
    add_number_option(app, "--root", root, 0, kMaxAllReduceRanks - 1,
                      "The root's rank, of a broadcast or a reduce");
    add_choice(app, "--algo", options.algorithm,
               "Algorithm: auto, " + alternatives(Collective::kAllReduce));
    app.add_flag("--inplace", options.in_place, "Input and output are the same buffer");
    add_number_option(app, "--nodes", options.nodes, 1, kMaxAllReduceRanks,
                      "Number of machines: groups of threads, all with the same number of ranks");
    bool shows = false;
    auto* show_option =
        app.add_flag("--show", shows, "Draw who sends which elements where, trip by trip");
    bool climbs = false;
    auto* ladder_option =
        app.add_flag("--ladder", climbs,
                     "Run an AllReduce in six versions, and a fused call in three "
                     "(--bytes 1K:1M, threads)");
    int rung = 0;
    add_number_option(app, "--rung", rung, 1, kLadderRungs, "With --ladder: only this version")
        ->default_str("")
        ->needs(ladder_option);
    for (const char* other :
         {"--mode", "--count", "--dtype", "--op", "--collective", "--inplace", "--nodes"}) {
        show_option->excludes(app.get_option(other));
        ladder_option->excludes(app.get_option(other));
    }
    show_option->excludes(app.get_option("--factor"));
    ladder_option->excludes(app.get_option("--algo"))->excludes(show_option);
    std::string json;
    add_output_option(app, "--json", json,
                      "With --show or --ladder: also write it to this file, as JSON");
    app.footer(
        "Try: 06_allreduce --ranks 4 --mode process --dtype bfloat16 --count 4097\n"
        "     06_allreduce --ranks 8 --mode thread --bytes 1K:1M\n"
        "     06_allreduce --ranks 4 --nodes 2 --bytes 1K:1M\n"
        "     06_allreduce --ladder --ranks 3\n"
        "SYMM_TIMEOUT is the limit of every wait, in seconds. 06_allreduce_bench compares times "
        "with NCCL's;\n"
        "06_allreduce_tune measures the fastest algorithm for each size.");
    return run_main(app, argc, argv, [&] {
        if (!json.empty() && !shows && !climbs) {
            throw UsageError("--json needs --show or --ladder");
        }
        if (shows) {
            std::vector<std::string> given;
            for (const char* name : {"--ranks", "--bytes", "--algo", "--json"}) {
                if (const auto* option = app.get_option(name); !option->empty()) {
                    given.push_back(name + ("=" + option->as<std::string>()));
                }
            }
            return show(given);
        }
        if (options.arithmetic.root >= options.ranks.ranks) {
            throw UsageError("--root {} is none of {} ranks", options.arithmetic.root,
                             options.ranks.ranks);
        }
        if (climbs && bytes_option->empty()) {
            bytes = "1K:1M";
        }
        options.sizes = parse_byte_range("--bytes", bytes);
        require_possible(options);
        if (climbs) {
            return run_ladder(rung, options.ranks.ranks, options.sizes, options.factor, json);
        }
        if (options.nodes > 1) {
            if (!app.get_option("--mode")->empty() && options.ranks.mode == RankMode::kProcess) {
                throw UsageError(
                    "--nodes cannot be combined with --mode process: threads act as machines");
            }
            return run_thread_nodes(options.nodes, options.ranks.ranks, calls_of(options));
        }
#ifdef SYMM_SHOW
        if (argc == 1 && !env::is_set("SYMM_RANK")) {  // and is not a rank that it starts below
            if (const int code = show({"--ranks=2", "--bytes=16"}); code != 0) {
                return code;
            }
            std::puts("");
            std::fflush(stdout);  // before the ranks print
        }
#endif
        return run_ranks(options.ranks, [&](Rank& rank) { run(rank, options); });
    });
}
