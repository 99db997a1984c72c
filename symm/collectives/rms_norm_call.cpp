#include "rms_norm_call.hpp"

#include <fmt/core.h>

#include <cmath>

namespace symm::collectives {
namespace {

using symm::refuse_unless;

constexpr unsigned kMostRows = 8192;
constexpr unsigned kLeastHidden = 512;
constexpr std::size_t kPack = 16;  // bytes: a kernel's loads and stores

/// Refuses buffers that are missing, lie at wrong addresses or overlap.
void require_apart(const RmsNormRows& rows) {
    struct Buffer {
        const char* name;
        CUdeviceptr begin;
        std::size_t bytes;
        bool is_optional = false;
        std::size_t alignment = kPack;
    };
    const std::size_t weights =
        rows.float_weights ? rows.hidden * sizeof(float) : bytes_of_row(rows);
    const Buffer all[] = {{"x", rows.x, bytes_of(rows)},
                          {"residual", rows.residual, bytes_of(rows), true},
                          {"out", rows.out, bytes_of_out(rows)},
                          {"weight", rows.weight, weights},
                          {"bias", rows.bias, weights, true},
                          {"out_scale", rows.out_scale, sizeof(float), true, sizeof(float)}};
    for (const Buffer& one : all) {
        if (one.begin == 0 && one.is_optional) {
            continue;
        }
        refuse_unless(one.begin != 0 && one.begin % one.alignment == 0,
                      "RMSNorm's {} is at {:#x}: it has to begin at a multiple of {} bytes",
                      one.name, one.begin, one.alignment);
        for (const Buffer& other : all) {
            refuse_unless(
                &other == &one || other.begin < one.begin || other.begin - one.begin >= one.bytes,
                "RMSNorm's {} and {} overlap", one.name, other.name);
        }
    }
}

}  // namespace

bool is_plain(const RmsNormRows& rows) {
    const bool float_weights = rows.float_weights && rows.type != symm::DataType::kFloat;
    return rows.residual != 0 && !float_weights && rows.weight_offset == 0 && rows.bias == 0 &&
           rows.out_scale == 0;
}

std::size_t bytes_of_row(const RmsNormRows& rows) {
    return rows.hidden * symm::size_of(rows.type);
}
std::size_t elements_of(const RmsNormRows& rows) {
    return std::size_t{rows.rows} * rows.hidden;
}
std::size_t bytes_of(const RmsNormRows& rows) {
    return rows.rows * bytes_of_row(rows);
}
std::size_t bytes_of_out(const RmsNormRows& rows) {
    return rows.out_scale == 0 ? bytes_of(rows) : elements_of(rows);
}

void require_possible(const RmsNormRows& rows) {
    refuse_unless(rows.type == symm::DataType::kFloat || rows.type == symm::DataType::kHalf ||
                      rows.type == symm::DataType::kBfloat16,
                  "RMSNorm takes float, half and bfloat16, not {}", symm::name_of(rows.type));
    refuse_unless(rows.rows >= 1 && rows.rows <= kMostRows, "RMSNorm takes 1 to {} rows, not {}",
                  kMostRows, rows.rows);
    refuse_unless(rows.hidden >= kLeastHidden && rows.hidden <= kMostHidden &&
                      bytes_of_row(rows) % kPack == 0,
                  "a row of RMSNorm has {} to {} elements, in whole {} bytes, not {} {}",
                  kLeastHidden, kMostHidden, kPack, rows.hidden, symm::name_of(rows.type));
    refuse_unless(rows.epsilon >= 0, "RMSNorm's epsilon is at least 0, not {}", rows.epsilon);
    refuse_unless(std::isfinite(rows.weight_offset), "RMSNorm's weight_offset is {}",
                  rows.weight_offset);
    require_apart(rows);
}

std::string text_of(const RmsNormRows& rows, RmsNormWay asked) {
    std::string text =
        fmt::format("AllReduce and RMSNorm of {} x {} {}, epsilon {}, by {}", rows.rows,
                    rows.hidden, symm::name_of(rows.type), rows.epsilon, symm::name_of(asked));
    if (!is_plain(rows)) {
        text += fmt::format(", {} residual, weights {}{:+}, {} bias{}",
                            rows.residual == 0 ? "no" : "with", rows.float_weights ? "float " : "",
                            rows.weight_offset, rows.bias == 0 ? "no" : "with",
                            rows.out_scale == 0 ? "" : ", to float8");
    }
    return text;
}

}  // namespace symm::collectives
