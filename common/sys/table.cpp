#include "common/sys/table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace symm {

std::string table_text(const TableRows& rows) {
    std::vector<std::size_t> widths(rows.front().size());
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths.at(i) = std::max(widths.at(i), row[i].size());
        }
    }
    std::string text;
    for (const auto& row : rows) {
        text += fmt::format("{:<{}}", row[0], widths[0]);
        for (std::size_t i = 1; i < row.size(); ++i) {
            text += fmt::format("  {:>{}}", row[i], widths[i]);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        text += '\n';
        if (&row == &rows.front()) {
            const std::size_t gaps = 2 * (widths.size() - 1);
            text += std::string(std::accumulate(widths.begin(), widths.end(), gaps), '-') + '\n';
        }
    }
    return text;
}

}  // namespace symm
