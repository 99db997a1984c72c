#include "labs/02_access/matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/cli/bytes.hpp"
#include "common/cli/table.hpp"

namespace symm {
namespace {

std::string json_string(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
            out += c;
        }
    }
    return out + '"';
}

std::string number(double value) {
    return fmt::format("{:.{}f}", value, value < 1 ? 4 : value < 100 ? 2 : 1);
}

std::string table_of(const Matrix& matrix) {
    std::vector<std::string> header{fmt::format("{} \\ {}", matrix.rows(), matrix.columns())};
    for (int column = 0; column < matrix.devices(); ++column) {
        header.push_back(std::to_string(column));
    }
    if (matrix.do_row_sums_count()) {
        header.push_back("in all");
    }
    Table table(header);
    for (int row = 0; row < matrix.devices(); ++row) {
        std::vector<std::string> cells{std::to_string(row)};
        double in_all = 0;
        for (int column = 0; column < matrix.devices(); ++column) {
            const auto& cell = matrix.at(row, column);
            cells.push_back(cell ? number(*cell) : "-");
            in_all += cell.value_or(0);
        }
        if (matrix.do_row_sums_count()) {
            cells.push_back(number(in_all));
        }
        table.add(cells);
    }
    return table.text();
}

}  // namespace

Matrix::Matrix(std::string name, std::string unit, std::string rows, std::string columns,
               int devices)
    : name_(std::move(name)),
      unit_(std::move(unit)),
      rows_(std::move(rows)),
      columns_(std::move(columns)),
      devices_(devices),
      cells_(static_cast<std::size_t>(devices) * static_cast<std::size_t>(devices)) {}

std::vector<double> Matrix::values() const {
    std::vector<double> values;
    for (const auto& cell : cells_) {
        if (cell) {
            values.push_back(*cell);
        }
    }
    return values;
}

std::string to_text(const PeerMeasurement& measurement) {
    std::string text = fmt::format("{} a transfer, {} times over\n",
                                   format_bytes(measurement.bytes), measurement.iterations);
    if (measurement.emulated) {
        text += fmt::format("({})\n", kEmulatedWarning);
    }
    for (const Matrix& matrix : measurement.matrices) {
        text += fmt::format("\n{}, {}\n{}", matrix.name(), matrix.unit(), table_of(matrix));
        const std::vector<double> values = matrix.values();
        if (!values.empty()) {
            const double total = std::accumulate(values.begin(), values.end(), 0.0);
            text += fmt::format("least {}  mean {}  greatest {}\n",
                                number(*std::min_element(values.begin(), values.end())),
                                number(total / static_cast<double>(values.size())),
                                number(*std::max_element(values.begin(), values.end())));
        }
    }
    return text;
}

std::string to_json(const PeerMeasurement& measurement) {
    std::string text = fmt::format(
        "{{\n  \"driver\": {},\n  \"meaningful\": {},\n  \"bytes\": {},\n  \"iterations\": {},\n"
        "  \"matrices\": [",
        json_string(measurement.driver), !measurement.emulated, measurement.bytes,
        measurement.iterations);
    const char* separator = "\n";
    for (const Matrix& matrix : measurement.matrices) {
        text += fmt::format(
            "{}    {{\"name\": {}, \"unit\": {}, \"rows\": {}, \"columns\": {}, \"values\": [",
            std::exchange(separator, ",\n"), json_string(matrix.name()), json_string(matrix.unit()),
            json_string(matrix.rows()), json_string(matrix.columns()));
        for (int row = 0; row < matrix.devices(); ++row) {
            text += row == 0 ? "[" : ", [";
            for (int column = 0; column < matrix.devices(); ++column) {
                const auto& cell = matrix.at(row, column);
                text += fmt::format("{}{}", column == 0 ? "" : ", ",
                                    cell ? fmt::format("{:.3f}", *cell) : "null");
            }
            text += "]";
        }
        text += "]}";
    }
    return text + "\n  ]\n}\n";
}

}  // namespace symm
