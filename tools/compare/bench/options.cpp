#include "tools/compare/bench/options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <type_traits>

#include "common/cli/cli.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/bytes.hpp"

namespace symm {

void add_bench_options(CLI::App& app, BenchOptions& options) {
    constexpr int kMost = 100'000;  // calls, launches and turns
    ComparisonOptions& comparison = options.comparison;
    auto& [type, op, collective, root] = comparison.arithmetic;
    const auto add_size = [&](const char* name, std::size_t& bytes, const char* description) {
        add_bytes_option(app, name, bytes, description)
            ->check([](const std::string& text) {
                return parse_bytes(text) == 0 ? "use 1 or more" : std::string();
            })
            ->default_str("");
    };
    add_size("-b,--minbytes", options.min_bytes, "Smallest size (default 1K)");
    add_size("-e,--maxbytes", comparison.most_bytes, "Largest size (default 1G; emulated 64K)");
    add_number_option<std::size_t>(app, "-f,--stepfactor", options.step_factor, 2, 1024,
                                   "Factor from one size to the next (default 2; emulated 4)")
        ->default_str("");
    add_choice(app, "--collective", collective,
               "Collective: allreduce, reducescatter, allgather, broadcast or reduce; sizes are "
               "those of the larger buffer");
    add_number_option(app, "-r,--root", root, 0, kMaxAllReduceRanks - 1,
                      "The root's rank, of a broadcast or a reduce");
    add_choice(app, "-d,--datatype", type,
               "Type: float, half, bfloat16, double, int8, uint8, int32, uint32, int64, uint64");
    add_choice(app, "-o,--op", op, "Operation: sum, prod, min, max or avg");
    add_number_option(app, "-n,--iters", comparison.iterations, 1, kMost,
                      "Calls per turn (default: about 20 ms of calls, from 5 to 200)")
        ->default_str("");
    add_number_option(app, "-w,--warmup_iters", comparison.warm_ups, 1, kMost,
                      "Untimed calls before each turn, at least 1");
    add_number_option(app, "-G,--cudagraph", comparison.graph_launches, 0, kMost,
                      "0: launch the calls one by one; N: launch them N times as one CUDA graph");
    add_number_option(app, "-g,--ngpus", options.ranks, 1, kMaxAllReduceRanks,
                      "Ranks, each of which has its own thread (default: as many as GPUs; "
                      "emulated 2)")
        ->default_str("");
    add_number_option(
        app, "-R,--local_register", comparison.windows, 0, 1,
        "1: buffers lie in windows, ours and NCCL's; 0: in none, as in most programs");
    add_number_option(app, "--rounds", comparison.rounds, 1, kMost,
                      "Turns of ours and of each of NCCL's paths; the result is the median "
                      "(default 5; emulated 1)")
        ->default_str("");
    app.add_flag_callback(
        "--no-nccl", [&] { comparison.nccl = false; }, "Do not compare with NCCL");
    add_output_option(app, "--json", options.json,
                      "Also write the rows to this file, for ./lab plot FILE")
        ->take_last();
}

void BenchOptions::complete() {
    constexpr std::size_t kLeast = 1024;
    std::size_t& max_bytes = comparison.most_bytes;
    const auto unless_given = []<class T>(T& value, std::type_identity_t<T> standard) {
        value = value != 0 ? value : standard;
    };
    unless_given(max_bytes, std::max(std::size_t{1} << (is_emulated() ? 16 : 30), min_bytes));
    unless_given(min_bytes, std::min(kLeast, max_bytes));
    unless_given(step_factor, is_emulated() ? 4 : 2);
    unless_given(ranks, is_emulated() ? 2 : std::min(device_count(), kMaxRanksOnGpus));
    unless_given(comparison.rounds, is_emulated() ? 1 : 5);
    if (comparison.arithmetic.root >= ranks) {
        throw UsageError("--root {} is none of {} ranks", comparison.arithmetic.root, ranks);
    }
    if (min_bytes > max_bytes) {
        throw UsageError("-b {} is more than -e {}", format_bytes(min_bytes),
                         format_bytes(max_bytes));
    }
    if (min_bytes < unit()) {
        const bool has_parts = comparison.arithmetic.parts(ranks) > 1;
        throw UsageError("-b {} is less than {} bytes, the size of one {}{}",
                         format_bytes(min_bytes), unit(), name_of(comparison.arithmetic.type),
                         has_parts ? " for each rank" : "");
    }
}

std::size_t BenchOptions::unit() const {
    return size_of(comparison.arithmetic.type) * comparison.arithmetic.parts(ranks);
}

std::vector<std::size_t> BenchOptions::sizes() const {
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = min_bytes; bytes <= comparison.most_bytes; bytes *= step_factor) {
        sizes.push_back(bytes / unit() * unit());
    }
    return sizes;
}

std::string BenchOptions::text() const {
    const auto& [type, op, collective, root] = comparison.arithmetic;
    return fmt::format(
        "{}, {}, {}, {} to {} by x{}, {} calls per turn, {} warm-up calls, {}{}, checked",
        name_of(collective), name_of(type), name_of(op), format_bytes(min_bytes),
        format_bytes(comparison.most_bytes), step_factor,
        comparison.iterations != 0 ? std::to_string(comparison.iterations) : "5 to 200",
        comparison.warm_ups,
        comparison.graph_launches != 0
            ? fmt::format("{} graph launch(es)", comparison.graph_launches)
            : "one by one",
        comparison.windows != 0 ? "" : ", in no windows");
}

}  // namespace symm
