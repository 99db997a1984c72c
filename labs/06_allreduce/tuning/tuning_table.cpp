#include "labs/06_allreduce/tuning/tuning_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <tuple>

#include "common/cuda/driver.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/file.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

constexpr std::size_t kMostRows = 256;  // of 68 bytes each: the ranks exchange one text
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

// H100s, H200s and NVSwitch: what `06_allreduce_tune --mode thread --bytes 1K:1G FILE` measures
// with `--ranks 2`, 4 and 8.
constexpr std::string_view kH200 = R"(
2  floating     -    8M    -  16M  256M
2  integer   512K     -    -  16M  256M
4  floating    1K  256K  16M    -  128M
4  integer   256K     -    -   8M  128M
8  floating     -  256K  16M    -  256M
8  integer   128K     -    -  16M  256M
)";
// Low enough for tests to reach every algorithm.
constexpr std::string_view kEmulated = R"(
2   floating   16K   1M     -   4M  16M
2   integer   512K    -     -   4M  16M
16  floating   16K  64K  256K   4M  16M
16  integer    64K    -     -   4M  16M
)";

std::string size_text(std::size_t bytes) {
    return bytes == 0 ? "-" : bytes == kAll ? "all" : format_bytes(bytes);
}

std::size_t size_of_text(std::string_view text) {
    return text == "-" ? 0 : text == "all" ? kAll : parse_bytes(text);
}

/// Throws UsageError, which does not name the place.
TuningRow parse_row(const std::string& line) {
    std::istringstream words(line);
    TuningRow row{};
    std::string types;
    if (!(words >> row.ranks >> types) || row.ranks < 1 ||
        (types != "floating" && types != "integer")) {
        throw UsageError("a row starts with the number of ranks, then `floating` or `integer`");
    }
    row.floating = types == "floating";
    for (std::size_t& bytes : row.up_to) {
        std::string word;
        words >> word;
        bytes = size_of_text(word);
    }
    if (std::string more; words >> more) {
        throw UsageError(fmt::format("there is no column for `{}`", more));
    }
    for (const Algorithm algorithm : kTuned) {
        if (!row.floating && is_floating_only(algorithm) && row.limit(algorithm) != 0) {
            throw UsageError(
                fmt::format("integers have no sentinel: write `-` for {}", name_of(algorithm)));
        }
    }
    return row;
}

}  // namespace

bool is_floating_only(Algorithm algorithm) {
    return algorithm == Algorithm::kSentinel || algorithm == Algorithm::kPush;
}

bool makes_halves(Algorithm algorithm) {
    return !is_floating_only(algorithm) && algorithm != Algorithm::kChunks;
}

Algorithm TuningRow::algorithm(std::size_t bytes) const {
    for (std::size_t i = 0; i < kTuned.size(); ++i) {
        if (bytes <= up_to.at(i)) {
            return kTuned.at(i);
        }
    }
    return Algorithm::kCopy;
}

std::size_t TuningRow::limit(Algorithm algorithm) const {
    return up_to.at(static_cast<std::size_t>(std::find(kTuned.begin(), kTuned.end(), algorithm) -
                                             kTuned.begin()));
}

std::size_t TuningRow::above(Algorithm algorithm) const {
    std::size_t most = 0;
    for (std::size_t i = 0; i < kTuned.size() && kTuned.at(i) < algorithm; ++i) {
        most = std::max(most, up_to.at(i));
    }
    return most;
}

TuningTable TuningTable::from_environment() {
    const std::string path = env::text("SYMM_TUNING");
    if (path.empty()) {
        return parse(is_emulated() ? kEmulated : kH200, "the library's table");
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
    for (int number = 1; std::getline(lines, line); ++number) {
        line.erase(std::min(line.find('#'), line.size()));
        if (line.find_first_not_of(" \t\r") == std::string::npos) {
            continue;
        }
        try {
            table.set(parse_row(line));
        } catch (const UsageError& error) {
            throw UsageError(fmt::format("{}, line {}: {}", origin, number, error.what()));
        }
    }
    if (table.rows_.size() > kMostRows) {
        throw UsageError(fmt::format("{}: {} rows, but at most {} are allowed", origin,
                                     table.rows_.size(), kMostRows));
    }
    for (const bool floating : {true, false}) {
        if (std::none_of(table.rows_.begin(), table.rows_.end(),
                         [&](const TuningRow& row) { return row.floating == floating; })) {
            throw UsageError(
                fmt::format("{}: no row for {} types", origin, floating ? "floating" : "integer"));
        }
    }
    return table;
}

std::string TuningTable::text() const {
    std::string text = fmt::format("# {:>5} {:>9}", "ranks", "types");
    for (const Algorithm algorithm : kTuned) {
        text += fmt::format(" {:>9}", name_of(algorithm));
    }
    for (const TuningRow& row : rows_) {
        text += fmt::format("\n{:>7} {:>9}", row.ranks, row.floating ? "floating" : "integer");
        for (const std::size_t bytes : row.up_to) {
            text += fmt::format(" {:>9}", size_text(bytes));
        }
    }
    return text + "\n";
}

const TuningRow& TuningTable::row(int ranks, bool floating) const {
    const TuningRow* found = nullptr;  // the last row, if all are for fewer ranks
    for (const TuningRow& row : rows_) {
        if (row.floating == floating) {
            found = &row;
            if (row.ranks >= ranks) {
                break;
            }
        }
    }
    return *found;
}

void TuningTable::set(const TuningRow& row) {
    const auto key = [](const TuningRow& of) { return std::tuple(of.ranks, !of.floating); };
    const auto place =
        std::lower_bound(rows_.begin(), rows_.end(), row,
                         [&](const auto& a, const auto& b) { return key(a) < key(b); });
    if (place != rows_.end() && key(*place) == key(row)) {
        *place = row;
    } else {
        rows_.insert(place, row);
    }
}

}  // namespace symm
