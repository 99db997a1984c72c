#pragma once
/// \file
/// Tables in plain text, columns as wide as they need to be.

#include <string>
#include <vector>

namespace symm {

/// The cells of each row, the header first. The header has a cell for each column; other rows may
/// be shorter.
using TableRows = std::vector<std::vector<std::string>>;

/// The rows as aligned lines: the first column to the left, the others to the right, and a line of
/// dashes under the header. Throws std::out_of_range for a row that is longer than the header.
std::string table_text(const TableRows& rows);

}  // namespace symm
