// Records when kernels and copies run during one AllReduce. Writes rows for bench/timeline.gp.

#include <fmt/core.h>

#include <map>

#include "common/cli/cli.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/file.hpp"
#include "labs/05_device_prims/reduction/result_check.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "tools/trace/gpu_work.hpp"

namespace {

using namespace symm;

struct Options {
    RankOptions ranks{.mode = RankMode::kThread};  ///< One process, so that one clock is enough.
    std::size_t bytes = 256 << 20;
    Algorithm algorithm = Algorithm::kAuto;
    std::string rows;
};

/// The second half of each GPU's work: the second of two calls.
std::vector<GpuWork> second_call(const std::vector<GpuWork>& work) {
    std::map<std::uint32_t, std::ptrdiff_t> items;
    for (const GpuWork& w : work) {
        ++items[w.device];
    }
    std::map<std::uint32_t, std::ptrdiff_t> seen;
    std::vector<GpuWork> second;
    for (const GpuWork& w : work) {
        if (2 * ++seen[w.device] > items[w.device]) {
            second.push_back(w);
        }
    }
    return second;
}

/// A row per kernel and copy: GPU, stream, begin and end in us, bytes, name.
void write(const std::string& path, const std::vector<GpuWork>& work) {
    std::string text;
    for (const GpuWork& w : work) {
        const auto us = [&](std::uint64_t ns) {
            return static_cast<double>(ns - work.front().begin_ns) / 1e3;
        };
        text += fmt::format("{}\t{}\t{:.1f}\t{:.1f}\t{}\t{}\n", w.device, w.stream, us(w.begin_ns),
                            us(w.end_ns), w.bytes, w.name);
    }
    write_file(path, text, path);
}

void run(Rank& rank, const Options& options) {
    constexpr Arithmetic kSum{DataType::kFloat, ReduceOp::kSum};
    const std::size_t count = options.bytes / sizeof(float);
    Communicator communicator(rank, {.limit = Deadline::standard_limit()});
    const CUdeviceptr in = communicator.allocate(options.bytes);
    const CUdeviceptr out = communicator.allocate(options.bytes);
    const Stream stream;
    Verifier verifier(rank.rank(), rank.size());
    verifier.fill(stream, kSum, in, count);
    Verifier::poison(stream, out, options.bytes);
    const auto two_calls = [&] {  // only the second calls begin at the same time on all ranks
        rank.bootstrap().barrier("begin");
        for (int i = 0; i < 2; ++i) {
            communicator.all_reduce(in, out, count, kSum.type, kSum.op, stream.get(),
                                    options.algorithm);
        }
        communicator.synchronize(stream, "the AllReduce");
        rank.bootstrap().barrier("end");
    };
    two_calls();  // includes the first call's set-up
    if (rank.rank() == 0) {
        write(options.rows, second_call(gpu_work_of(two_calls)));
    } else {
        two_calls();
    }
    rank.bootstrap().barrier("recorded");
    verifier.check(stream, kSum, out, count);
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Records when the GPUs run kernels and copies during one AllReduce.",
                 "06_allreduce_timeline");
    Options options;
    add_number_option(app, "--ranks", options.ranks.ranks, 1, kMaxAllReduceRanks,
                      "Ranks; each is a thread");
    add_bytes_option(app, "--bytes", options.bytes, "Size of a buffer");
    add_choice(app, "--algo", options.algorithm, "Algorithm, as for 06_allreduce");
    add_output_option(app, "rows", options.rows, "The file to write")->required();
    app.footer(
        "Needs GPUs, and CUPTI of the CUDA Toolkit. To draw it: ROWS=ROWS gnuplot -c "
        "tools/trace/timeline.gp PICTURE.svg");
    return run_main(app, argc, argv, [&] {
        if (is_emulated()) {
            throw UsageError("it needs GPUs: emulated ones keep no record of their work");
        }
        return run_ranks(options.ranks, [&](Rank& rank) { run(rank, options); });
    });
}
