#include "labs/06_allreduce/comparison/bench/options.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "common/cli/cli.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/bytes.hpp"

namespace symm {
namespace {

constexpr std::size_t kMostSizes = 100'000;
constexpr int kMost = 100'000;  // calls, launches and turns

template <class Enum>
std::vector<std::string> choices() {
    return {kNamesOf<Enum>.values.begin(), kNamesOf<Enum>.values.end()};
}

}  // namespace

void add_bench_options(CLI::App& app, BenchOptions& options) {
    ComparisonOptions& comparison = options.comparison;
    const auto add_size = [&](const char* name, std::size_t& bytes, const char* description) {
        return add_bytes_option(app, name, bytes, description)
            ->check([](const std::string& text) {
                return parse_bytes(text) == 0 ? "use 1 or more" : std::string();
            })
            ->default_str("");
    };
    add_size("-b,--minbytes", options.min_bytes, "Smallest size (default 1K)");
    add_size("-e,--maxbytes", options.max_bytes, "Largest size (default 1G; emulated 64K)");
    CLI::Option* step = add_size("-i,--stepbytes", options.step_bytes,
                                 "Bytes from one size to the next, instead of a factor");
    add_number_option<std::size_t>(app, "-f,--stepfactor", options.step_factor, 2, 1024,
                                   "Factor from one size to the next (default 2; emulated 4)")
        ->default_str("")
        ->excludes(step);
    app.add_option("--collective", options.collective,
                   "Collective to measure; sizes are those of the larger buffer")
        ->check(CLI::IsMember({"allreduce", "reducescatter", "allgather"}))
        ->capture_default_str();
    app.add_option("-d,--datatype", options.type, "Type of the elements")
        ->check(CLI::IsMember(choices<DataType>()))
        ->capture_default_str();
    app.add_option("-o,--op", options.op, "Operation")
        ->check(CLI::IsMember(choices<ReduceOp>()))
        ->capture_default_str();
    comparison.iterations = 0;
    comparison.warm_ups = 5;
    add_number_option(app, "-n,--iters", comparison.iterations, 1, kMost,
                      "Calls per turn (default: about 20 ms of calls, from 5 to 200)")
        ->default_str("");
    add_number_option(app, "-w,--warmup_iters", comparison.warm_ups, 1, kMost,
                      "Untimed calls before each turn, at least 1");
    add_number_option(app, "-c,--check", options.check, 0, 1,
                      "1: check all results after each turn");
    add_number_option(app, "-G,--cudagraph", comparison.graph_launches, 0, kMost,
                      "0: launch the calls one by one; N: launch them N times as one CUDA graph");
    add_number_option(app, "-t,--nthreads", options.threads, 1, kMaxAllReduceRanks,
                      "Threads; with -g: ranks = threads x GPUs per thread (default: as many ranks "
                      "as GPUs; emulated 2)")
        ->default_str("");
    add_number_option(app, "-g,--ngpus", options.gpus, 1, kMaxAllReduceRanks,
                      "GPUs per thread. Each rank still has its own thread")
        ->default_str("");
    add_number_option(app, "--rounds", options.rounds, 1, kMost,
                      "Turns of ours and of each of NCCL's paths; the result is the median "
                      "(default 5; emulated 1)")
        ->default_str("");
    app.add_flag("--no-nccl", options.no_nccl, "Do not compare with NCCL");
    add_output_option(app, "--json", options.json,
                      "Also write the rows to this file, for ./lab plot FILE")
        ->take_last();
}

void BenchOptions::complete() {
    comparison.arithmetic = {named<DataType>("--dtype", type), named<ReduceOp>("--op", op),
                             named<Collective>("--collective", collective)};
    constexpr std::size_t kLeast = 1024;
    const std::size_t most = std::size_t{1} << (is_emulated() ? 16 : 30);
    max_bytes = max_bytes != 0 ? max_bytes : std::max(most, min_bytes);
    min_bytes = min_bytes != 0 ? min_bytes : std::min(kLeast, max_bytes);
    if (step_factor == 0) {
        step_factor = is_emulated() ? 4 : 2;
    }
    if (min_bytes > max_bytes) {
        throw UsageError("-b {} is more than -e {}", format_bytes(min_bytes),
                         format_bytes(max_bytes));
    }
    if (step_bytes != 0 && (max_bytes - min_bytes) / step_bytes >= kMostSizes) {
        throw UsageError("-i {} makes more than {} sizes", format_bytes(step_bytes), kMostSizes);
    }
    if (threads == 0 && gpus == 0) {
        gpus = is_emulated() ? 2 : std::min(device_count(), kMaxRanksOnGpus);
    }
    threads = std::max(threads, 1);
    gpus = std::max(gpus, 1);
    if (ranks() > kMaxAllReduceRanks) {
        throw UsageError("-t {} -g {} make {} ranks, more than {}", threads, gpus, ranks(),
                         kMaxAllReduceRanks);
    }
    if (rounds != 0) {
        comparison.rounds = rounds;
    } else if (is_emulated()) {
        comparison.rounds = 1;
    }
    if (min_bytes < unit()) {
        throw UsageError("-b {} is less than {} bytes, the size of one {}{}",
                         format_bytes(min_bytes), unit(), type,
                         collective == "allreduce" ? "" : " for each rank");
    }
    comparison.check = check != 0;
    comparison.nccl = !no_nccl;
    comparison.most_bytes = max_bytes;
}

std::size_t BenchOptions::unit() const {
    return size_of(comparison.arithmetic.type) * comparison.arithmetic.parts(ranks());
}

std::vector<std::size_t> BenchOptions::sizes() const {
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = min_bytes; bytes <= max_bytes;
         bytes = step_bytes != 0 ? bytes + step_bytes : bytes * step_factor) {
        sizes.push_back(bytes / unit() * unit());
    }
    return sizes;
}

std::string BenchOptions::text() const {
    const bool by_bytes = step_bytes != 0;
    return fmt::format(
        "{}, {}, {}, {} to {} by {}{}, {} calls per turn, {} warm-up calls, {}, {}", collective,
        type, op, format_bytes(min_bytes), format_bytes(max_bytes), by_bytes ? "+" : "x",
        by_bytes ? format_bytes(step_bytes) : std::to_string(step_factor),
        comparison.iterations != 0 ? std::to_string(comparison.iterations) : "5 to 200",
        comparison.warm_ups,
        comparison.graph_launches != 0
            ? fmt::format("{} graph launch(es)", comparison.graph_launches)
            : "one by one",
        comparison.check ? "checked" : "not checked");
}

}  // namespace symm
