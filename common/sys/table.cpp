#include "common/sys/table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

namespace symm {

void Table::add(std::vector<std::string> cells) {
    if (cells.size() > rows_.front().size()) {
        throw std::invalid_argument("a table row has more cells than the table has columns");
    }
    cells.resize(rows_.front().size());
    rows_.push_back(std::move(cells));
}

std::string Table::text() const {
    std::vector<std::size_t> widths(rows_.front().size(), 0);
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::string out;
    for (std::size_t line = 0; line < rows_.size(); ++line) {
        std::string text = fmt::format("{:<{}}", rows_[line][0], widths[0]);
        for (std::size_t i = 1; i < widths.size(); ++i) {
            text += fmt::format("  {:>{}}", rows_[line][i], widths[i]);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + '\n';
        if (line == 0) {
            std::size_t total = widths[0];
            for (std::size_t i = 1; i < widths.size(); ++i) {
                total += 2 + widths[i];
            }
            out += std::string(total, '-') + '\n';
        }
    }
    return out;
}

}  // namespace symm
