#pragma once
/// \file
/// Numbers for pairs of devices, and the three ways to look at them: text, JSON, a heat map.

#include <optional>
#include <string>
#include <vector>

namespace symm {

/// One measured quantity for pairs of devices. Cells that were not measured are empty: a device and
/// itself, and pairs that are not used.
class Matrix {
public:
    /// `name` says what was measured; `rows` and `columns` what a row and a column stand for.
    Matrix(std::string name, std::string unit, std::string rows, std::string columns, int devices);

    const std::string& name() const { return name_; }
    const std::string& unit() const { return unit_; }
    const std::string& rows() const { return rows_; }
    const std::string& columns() const { return columns_; }
    int devices() const { return devices_; }
    std::optional<double>& at(int row, int column) { return cells_.at(index(row, column)); }
    const std::optional<double>& at(int row, int column) const {
        return cells_.at(index(row, column));
    }
    /// Says that a row's cells were measured together, so that their sum is a rate as well.
    void row_sums_count() { row_sums_count_ = true; }
    bool do_row_sums_count() const { return row_sums_count_; }
    /// All cells that were measured.
    std::vector<double> values() const;

private:
    std::size_t index(int row, int column) const {
        return static_cast<std::size_t>(row * devices_ + column);
    }
    std::string name_, unit_, rows_, columns_;
    int devices_;
    bool row_sums_count_ = false;
    std::vector<std::optional<double>> cells_;
};

/// What a set of matrices was measured with.
struct PeerMeasurement {
    std::string driver;     ///< As describe_driver() says.
    bool emulated = false;  ///< The numbers are no performance of anything.
    std::size_t bytes = 0;  ///< Of each transfer.
    int iterations = 0;
    std::vector<Matrix> matrices;
};

/// Said wherever emulated numbers are shown.
inline constexpr const char* kEmulatedWarning =
    "emulated GPUs: these timings mean nothing, only that the data arrived";

/// Tables, each with its least, mean and greatest value.
std::string to_text(const PeerMeasurement& measurement);
/// One object: driver, meaningful, bytes, iterations, matrices [{name, unit, rows, columns,
/// values}]; a cell that was not measured is null.
std::string to_json(const PeerMeasurement& measurement);
/// A page of heat maps, one below the other; the scale of each is its own.
std::string to_svg(const PeerMeasurement& measurement);

}  // namespace symm
