// to_svg: one coloured square for each pair of devices.

#include <fmt/format.h>

#include <algorithm>

#include "common/cli/bytes.hpp"
#include "labs/02_access/matrix.hpp"

namespace symm {
namespace {

constexpr int kCell = 56;
constexpr int kLeft = 90;
constexpr int kTitle = 64;  // above a matrix: its name and the numbers of its columns
constexpr int kGap = 24;
constexpr int kTop = 56;

std::string escape(const std::string& text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string text_at(int x, int y, const std::string& anchor, int size, const std::string& text,
                    const std::string& colour = "#222") {
    return fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\">{}</text>\n", x, y,
        anchor, size, colour, escape(text));
}

/// From white (the matrix's least) to dark blue (its greatest), a ramp that stays readable without
/// colour.
std::string colour_of(double share) {
    const auto blend = [&](int low, int high) {
        return static_cast<int>(low + (high - low) * share);
    };
    return fmt::format("#{:02x}{:02x}{:02x}", blend(0xf2, 0x08), blend(0xf6, 0x3c),
                       blend(0xfb, 0x7d));
}

std::string draw(const Matrix& matrix, int top) {
    const std::vector<double> values = matrix.values();
    const double least = values.empty() ? 0 : *std::min_element(values.begin(), values.end());
    const double most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
    std::string out =
        text_at(16, top + 18, "start", 15, fmt::format("{}, {}", matrix.name(), matrix.unit()));
    out += text_at(16, top + 38, "start", 12,
                   fmt::format("rows: {}; columns: {}", matrix.rows(), matrix.columns()), "#555");
    for (int i = 0; i < matrix.devices(); ++i) {
        out += text_at(kLeft + i * kCell + kCell / 2, top + kTitle - 6, "middle", 12,
                       std::to_string(i));
        out += text_at(kLeft - 10, top + kTitle + i * kCell + kCell / 2 + 4, "end", 12,
                       std::to_string(i));
    }
    for (int row = 0; row < matrix.devices(); ++row) {
        for (int column = 0; column < matrix.devices(); ++column) {
            const int x = kLeft + column * kCell;
            const int y = top + kTitle + row * kCell;
            const auto& cell = matrix.at(row, column);
            // Equal values, as on a machine with one kind of link, are all drawn dark.
            const double share = !cell ? 0 : most > least ? (*cell - least) / (most - least) : 1;
            out += fmt::format(
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" "
                "stroke=\"#fff\"/>\n",
                x, y, kCell, kCell, cell ? colour_of(share) : "#ddd");
            if (cell) {
                out += text_at(x + kCell / 2, y + kCell / 2 + 4, "middle", 12,
                               fmt::format("{:.{}f}", *cell, *cell < 100 ? 1 : 0),
                               share > 0.5 ? "#fff" : "#222");
            }
        }
    }
    return out;
}

}  // namespace

std::string to_svg(const PeerMeasurement& measurement) {
    int height = kTop;
    int width = 620;
    std::string body;
    for (const Matrix& matrix : measurement.matrices) {
        body += draw(matrix, height);
        height += kTitle + matrix.devices() * kCell + kGap;
        width = std::max(width, kLeft + matrix.devices() * kCell + 16);
    }
    std::string head = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        width, height);
    head += text_at(16, 22, "start", 13,
                    fmt::format("{}; {} a transfer, {} times over", measurement.driver,
                                format_bytes(measurement.bytes), measurement.iterations));
    if (measurement.emulated) {
        head += text_at(16, 42, "start", 13, kEmulatedWarning, "#b00020");
    }
    return head + body + "</svg>\n";
}

}  // namespace symm
