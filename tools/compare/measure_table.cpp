#include "tools/compare/measure_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <list>
#include <span>

#include "common/cuda/driver.hpp"
#include "common/sys/file.hpp"
#include "tools/compare/nccl_comparison.hpp"

namespace symm {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Whether to measure it: calls of much more than scratch memory holds would take forever.
bool is_possible(const AlgorithmRow& row, const Communicator& communicator, DataType type,
                 std::size_t bytes) {
    return bytes <= row.cost.at_once(communicator.ranks()) && row.supports(type, ReduceOp::kSum) &&
           (!row.needs.own_device || communicator.has_own_devices());
}

ComparisonOptions options_for(DataType type, std::size_t most_bytes) {
    return {.arithmetic = {type},
            .most_bytes = most_bytes,
            .iterations = is_emulated() ? 2 : 0,
            .graph_launches = is_emulated() ? 0 : 1,
            .rounds = is_emulated() ? 1 : 3,
            .nccl = false};
}

std::vector<TunedSize> measure(const Rank& rank, const Communicator& communicator,
                               NcclComparison& comparison, ByteRange range, DataType type) {
    std::vector<TunedSize> sizes;
    for (std::size_t bytes = range.first; bytes <= range.last; bytes *= 2) {
        TunedSize& size = sizes.emplace_back(TunedSize{bytes, {}});
        std::string line = fmt::format("{:>9} {:>8}", name_of(type), format_bytes(bytes));
        for (std::size_t column = 0; column < kTunedAlgorithms; ++column) {
            const Algorithm algorithm = TuningRow::algorithm_of(column);
            const bool possible = is_possible(*find_row(Collective::kAllReduce, algorithm),
                                              communicator, type, bytes);
            size.times.at(column) =
                possible ? comparison.run(bytes / size_of(type), false, algorithm).ours : kNever;
            line += possible ? fmt::format(" {:>9.1f}", size.times.at(column))
                             : fmt::format(" {:>9}", "-");
        }
        rank.headline("{}\n", line);
    }
    return sizes;
}

}  // namespace

// The best choice for sizes[0..s] that ends with column c is the cost of s in column c, plus the
// best choice for sizes[0..s-1] that ends at column c or before.
TuningRow best_row(int ranks, CallKind kind, const std::vector<TunedSize>& sizes) {
    std::vector<std::array<double, kTunedAlgorithms>> cost(sizes.size());
    const auto cheapest = [&](std::size_t s, std::size_t last) {
        const auto costs = std::span(cost[s]).first(last + 1);
        return static_cast<std::size_t>(std::ranges::min_element(costs) - costs.begin());
    };
    for (std::size_t s = 0; s < sizes.size(); ++s) {
        const double best = *std::ranges::min_element(sizes[s].times);
        for (std::size_t c = 0; c < kTunedAlgorithms; ++c) {
            const double before = s == 0 ? 0 : cost[s - 1].at(cheapest(s - 1, c));
            cost[s].at(c) = before + sizes[s].times.at(c) / best;
        }
    }
    TuningRow row{ranks, kind, {}};
    std::size_t column = kTunedAlgorithms - 1;
    for (std::size_t s = sizes.size(); s-- > 0;) {
        column = cheapest(s, column);
        if (column < TuningRow::kColumns && row.up_to.at(column) == 0) {
            const bool last = s + 1 == sizes.size();
            row.up_to.at(column) = last ? std::numeric_limits<std::size_t>::max() : sizes[s].bytes;
        }
    }
    return row;
}

void tune(Rank& rank, Communicator& communicator, ByteRange sizes, TuningTable table,
          const std::string& file) {
    std::string head = fmt::format("{:>9} {:>8}", "type", "bytes");
    for (std::size_t column = 0; column < kTunedAlgorithms; ++column) {
        head += fmt::format(" {:>9}", name_of(TuningRow::algorithm_of(column)));
    }
    rank.headline("{}\n", head);
    constexpr std::array kTypes{DataType::kFloat, DataType::kInt32};
    std::list<NcclComparison> comparisons;  // their streams must outlive the next one's calls
    for (const DataType type : kTypes) {
        NcclComparison& comparison =
            comparisons.emplace_back(rank, communicator, options_for(type, sizes.last));
        table.set(best_row(rank.size(), kind_of({{type}}),
                           measure(rank, communicator, comparison, sizes, type)));
    }
    rank.bootstrap().together("tuning table", [&] {
        if (rank.rank() == 0) {
            write_file(file, fmt::format("# {}\n{}", describe_driver(), table.text()), file);
        }
    });
    rank.headline("\n{}\nWritten to {}. To use it: SYMM_TUNING={}\n", table.text(), file, file);
}

}  // namespace symm
