#include "labs/06_allreduce/tuning/tuning_table.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <sstream>
#include <tuple>

#include "common/cuda/driver.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/file.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

constexpr std::size_t kMostRows = 256;  // of 72 bytes each: the ranks exchange one text

// H100s, H200s and NVSwitch: what `06_allreduce_tune --mode thread --bytes 1K:1G FILE` measures
// with `--ranks 2`, 4 and 8. Rows of other collectives: by the benchmark with SYMM_ALGO. Those with
// a root are predictions for more than two ranks.
constexpr std::string_view kH200 = R"(
ranks calls   oneshot sentinel push twoshot chunks
2  floating         -    8M    -  16M  256M
2  integer       512K     -    -  16M  256M
2  reducescatter   1M     -    - 256M     -
2  allgather       1M     -    - 512M     -
2  broadcast       1M     -    -  all     -
2  reduce          1M     -    -  all     -
4  floating        1K  256K  16M    -  256M
4  integer       256K     -    -   8M  256M
4  reducescatter   1M     -    - 128M     -
4  allgather       1M     -    -  16M  512M
4  broadcast     256K     -    -  all     -
4  reduce        256K     -    -  all     -
8  floating         -  256K  16M    -  512M
8  integer       128K     -    -  16M  512M
8  reducescatter   1M     -    - 256M     -
8  allgather       1M     -    -  16M  512M
8  broadcast     256K     -    -  all     -
8  reduce        256K     -    -  all     -
)";
// Low enough for tests to reach every algorithm.
constexpr std::string_view kEmulated = R"(
ranks calls   oneshot sentinel push twoshot chunks
2   floating       16K   1M     -   4M  16M
2   integer       512K    -     -   4M  16M
2   reducescatter   4K    -     -  32M    -
2   allgather       4K    -     -   4M  32M
2   broadcast       4K    -     -  all    -
2   reduce          4K    -     -  all    -
16  floating       16K  64K  256K   4M  16M
16  integer        64K    -     -   4M  16M
16  reducescatter   8K    -     -  32M    -
16  allgather       8K    -     -   4M  32M
16  broadcast       8K    -     -  all    -
16  reduce          8K    -     -  all    -
)";

std::string_view librarys_table() {
    return is_emulated() ? kEmulated : kH200;
}

std::string size_text(std::size_t bytes) {
    return bytes == 0 ? "-" : bytes == kAnySize ? "all" : format_bytes(bytes);
}

std::size_t size_of_text(std::string_view text) {
    return text == "-" ? 0 : text == "all" ? kAnySize : parse_bytes(text);
}

bool has_column(CallKind kind, Algorithm algorithm) {
    const auto rows = algorithm_rows();
    return std::ranges::any_of(rows, [&](const AlgorithmRow& row) {
        return row.algorithm == algorithm && kind_makes(kind, row);
    });
}

/// The columns that the first row names: the algorithm of each. Throws UsageError, which does not
/// name the place, as parse_row() does.
std::vector<Algorithm> parse_columns(std::istringstream words) {
    std::string ranks, calls;
    if (!(words >> ranks >> calls) || ranks != "ranks" || calls != "calls") {
        throw UsageError("the first row names the columns: ranks calls, then algorithms");
    }
    std::vector<Algorithm> columns;
    for (std::string name; words >> name;) {
        columns.push_back(named<Algorithm>("column", name));
        if (TuningRow::column(columns.back()) >= TuningRow::kColumns) {
            throw UsageError("there is no column `{}`", name);
        }
    }
    return columns;
}

TuningRow parse_row(std::istringstream words, const std::vector<Algorithm>& columns) {
    TuningRow row{};
    std::string kind;
    const auto& kinds = kNamesOf<CallKind>.values;
    if (!(words >> row.ranks >> kind) || row.ranks < 1 ||
        std::ranges::find(kinds, kind) == kinds.end()) {
        throw UsageError("a row starts with the number of ranks, then {}", fmt::join(kinds, ", "));
    }
    row.kind = named<CallKind>("calls", kind);
    for (const Algorithm algorithm : columns) {
        std::string word;
        words >> word;
        const std::size_t up_to = size_of_text(word);
        if (up_to != 0 && !has_column(row.kind, algorithm)) {
            throw UsageError("{} has no {} calls: write `-`", name_of(algorithm),
                             name_of(row.kind));
        }
        row.up_to.at(TuningRow::column(algorithm)) = up_to;
    }
    if (std::string more; words >> more) {
        throw UsageError("there is no column for `{}`", more);
    }
    return row;
}

}  // namespace

CallKind kind_of(const Call& call) {
    if (call.collective == Collective::kAllReduce) {
        return is_floating(call.type) ? CallKind::kFloating : CallKind::kInteger;
    }
    return named<CallKind>("collective", name_of(call.collective));
}

bool kind_makes(CallKind kind, const AlgorithmRow& row) {
    const bool floating = kind == CallKind::kFloating;
    const Call call{
        {floating ? DataType::kFloat : DataType::kInt32, ReduceOp::kSum, row.collective}};
    return kind_of(call) == kind && (floating || !row.needs.floating_only);
}

Algorithm TuningRow::algorithm(std::size_t bytes) const {
    const auto column =
        std::ranges::find_if(up_to, [&](std::size_t most) { return bytes <= most; });
    return algorithm_of(static_cast<std::size_t>(column - up_to.begin()));
}

std::size_t TuningRow::limit(Algorithm algorithm) const {
    return column(algorithm) < kColumns         ? up_to.at(column(algorithm))
           : algorithm == Algorithm::kMulticast ? 0
                                                : kAnySize;
}

std::size_t TuningRow::above(Algorithm algorithm) const {
    const auto columns = std::span(up_to).first(std::min(column(algorithm), kColumns));
    return columns.empty() ? 0 : std::ranges::max(columns);
}

TuningTable TuningTable::from_environment() {
    const std::string path = env::text("SYMM_TUNING");
    if (path.empty()) {
        return parse(librarys_table(), "the library's table");
    }
    return read(path, "SYMM_TUNING=" + path);
}

TuningTable TuningTable::read(const std::string& path, const std::string& origin) {
    return parse(read_file(path, origin), origin);
}

TuningTable TuningTable::parse(std::string_view text, std::string_view origin) {
    TuningTable table;
    std::istringstream lines{std::string(text)};
    std::string line;
    std::vector<Algorithm> columns;
    for (int number = 1; std::getline(lines, line); ++number) {
        line.erase(std::min(line.find('#'), line.size()));
        if (line.find_first_not_of(" \t\r") == std::string::npos) {
            continue;
        }
        try {
            if (columns.empty()) {
                columns = parse_columns(std::istringstream(line));
            } else {
                table.set(parse_row(std::istringstream(line), columns));
            }
        } catch (const UsageError& error) {
            throw UsageError("{}, line {}: {}", origin, number, error.what());
        }
    }
    if (table.rows_.size() > kMostRows) {
        throw UsageError("{}: {} rows, but at most {} are allowed", origin, table.rows_.size(),
                         kMostRows);
    }
    for (const CallKind kind : kCallKinds) {
        if (std::ranges::find(table.rows_, kind, &TuningRow::kind) != table.rows_.end()) {
            continue;
        }
        if (kind == CallKind::kFloating || kind == CallKind::kInteger) {
            throw UsageError("{}: no row for {} types", origin, name_of(kind));
        }
        for (const TuningRow& row : parse(librarys_table(), "the library's table").rows_) {
            if (row.kind == kind) {
                table.set(row);
            }
        }
    }
    return table;
}

std::string TuningTable::text() const {
    std::string text = fmt::format("{:>7} {:>13}", "ranks", "calls");
    for (std::size_t column = 0; column < TuningRow::kColumns; ++column) {
        text += fmt::format(" {:>9}", name_of(TuningRow::algorithm_of(column)));
    }
    for (const TuningRow& row : rows_) {
        text += fmt::format("\n{:>7} {:>13}", row.ranks, name_of(row.kind));
        for (const std::size_t bytes : row.up_to) {
            text += fmt::format(" {:>9}", size_text(bytes));
        }
    }
    return text + "\n";
}

const TuningRow& TuningTable::row(int ranks, CallKind kind) const {
    const TuningRow* found = nullptr;  // the last row, if all are for fewer ranks
    for (const TuningRow& row : rows_) {
        if (row.kind == kind) {
            found = &row;
            if (row.ranks >= ranks) {
                break;
            }
        }
    }
    return *found;
}

void TuningTable::set(const TuningRow& row) {
    const auto key = [](const TuningRow& of) { return std::tuple(of.ranks, of.kind); };
    const auto place = std::ranges::lower_bound(
        rows_, row, [&](const auto& a, const auto& b) { return key(a) < key(b); });
    if (place != rows_.end() && key(*place) == key(row)) {
        *place = row;
    } else {
        rows_.insert(place, row);
    }
}

}  // namespace symm
