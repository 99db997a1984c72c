// Lab 06: an AllReduce on symmetric memory. All that a program does to make one, with every element
// of the result checked.

#include <fmt/core.h>

#include <limits>

#include "common/cli/bytes.hpp"
#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/rank_options.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "labs/06_allreduce/communicator/result_check.hpp"
#include "labs/06_allreduce/communicator/room.hpp"

namespace {

using namespace symm;

struct Options {
    RankOptions ranks;
    Arithmetic arithmetic;
    ByteRange sizes{1 << 20, 1 << 20};
    std::size_t factor = 4;  ///< From one size to the next.
    Algorithm algorithm = Algorithm::kAuto;
    bool in_place = false;
};

void run(Rank& rank, const Options& options) {
    const auto [type, op] = options.arithmetic;
    require_room(rank, options.sizes.last, "--bytes");
    Communicator communicator(rank, {.limit = Deadline::standard_limit()});
    const CUdeviceptr in = communicator.allocate(options.sizes.last);
    const CUdeviceptr out = options.in_place ? in : communicator.allocate(options.sizes.last);
    const Stream stream;
    Verifier verifier(rank.rank(), rank.size());

    rank.headline("{}\nAllReduce, {} ranks ({} mode), {}, {}, {}\n\n", describe_driver(),
                  rank.size(), name_of(rank.mode()), name_of(type), name_of(op),
                  options.in_place ? "in place" : "out of place");
    rank.headline("{:>8} {:>12} {:>9}   {:<7} {}\n", "bytes", "count", "algo", "result",
                  "why this algorithm");
    for (std::size_t bytes = options.sizes.first; bytes <= options.sizes.last;
         bytes *= options.factor) {
        const std::size_t count = bytes / size_of(type);
        verifier.fill(stream, options.arithmetic, in, count);
        if (!options.in_place) {
            Verifier::poison(stream, out, bytes);
        }
        const CallPlan plan =
            communicator.all_reduce(in, out, count, type, op, stream.get(), options.algorithm);
        communicator.synchronize(stream, "the AllReduce");
        rank.bootstrap().together("result",
                                  [&] { verifier.check(stream, options.arithmetic, out, count); });
        rank.headline("{:>8} {:>12} {:>9}   right   {}\n", format_bytes(count * size_of(type)),
                      count, name_of(plan.algorithm), describe(plan, rank.size()));
    }
    rank.headline("\nAll results are right.\n");
}

/// Some mistakes are told here, once, and not by each rank.
void require_possible(const Options& options) {
    const DataType type = options.arithmetic.type;
    const Algorithm wanted = TunerOverrides::from_environment().algorithm;
    if (!is_floating(type) &&
        is_floating_only(options.algorithm == Algorithm::kAuto ? wanted : options.algorithm)) {
        throw UsageError(fmt::format("--dtype {}: integers have no sentinel", name_of(type)));
    }
    if (options.sizes.first % size_of(type) != 0) {
        throw UsageError(fmt::format("--bytes {} is no whole number of {}s of {} bytes each",
                                     format_bytes(options.sizes.first), name_of(type),
                                     size_of(type)));
    }
    TuningTable::from_environment();
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
    add_rank_options(app, options.ranks, kMaxAllReduceRanks);
    auto* bytes_option =
        app.add_option("--bytes", bytes, "Size of a buffer, such as 64K, or a range, such as 1K:1G")
            ->capture_default_str();
    add_number_option<std::size_t>(app, "--factor", options.factor, 2, 1024,
                                   "Factor from one size of a range to the next");
    add_number_option<std::size_t>(app, "--count", count, 1,
                                   std::numeric_limits<std::size_t>::max() >> 4,
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
    app.footer(
        "Try: 06_allreduce --ranks 4 --mode process --dtype bfloat16 --count 4097\n"
        "     06_allreduce --ranks 8 --mode thread --bytes 1K:1M\n"
        "SYMM_TIMEOUT is the limit of every wait, in seconds. 06_allreduce_bench measures times, "
        "beside NCCL's;\n"
        "06_allreduce_tune measures which algorithm is the fastest for which size.");
    return run_main(app, argc, argv, [&] {
        options.arithmetic = {data_type(dtype), reduce_op(op)};
        options.algorithm = algorithm_named(algo);
        options.sizes = parse_byte_range("--bytes", bytes);
        if (count != 0) {
            options.sizes.first = options.sizes.last = count * size_of(options.arithmetic.type);
        }
        require_possible(options);
        return run_ranks(options.ranks, [&](Rank& rank) { run(rank, options); });
    });
}
