#pragma once
/// \file
/// A table in plain text, columns as wide as they need to be.

#include <string>
#include <vector>

namespace symm {

/// Collects rows, then prints them aligned: the first column to the left, the others to the right.
class Table {
public:
    explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
    /// Adds a row; missing cells are empty. Throws std::invalid_argument for more cells than
    /// columns.
    void add(std::vector<std::string> cells);
    /// All rows, one per line, with a line of dashes under the header.
    std::string text() const;

private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace symm
