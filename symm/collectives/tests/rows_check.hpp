#pragma once
/// \file
/// Rows for AllReduceRmsNorm, and the check of its results against a reference in double.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "../all_reduce_rms_norm.hpp"
#include "checks.hpp"

namespace symm::collectives {

/// Calls `use(T{})` with the element type.
template <class Use>
void with_row_type(symm::DataType type, const Use& use) {
    return type == symm::DataType::kFloat  ? use(float{})
           : type == symm::DataType::kHalf ? use(__half{})
                                           : use(__nv_bfloat16{});
}

/// Buffers of one rank and their contents; x and residual are in windows unless `in_windows` is
/// false. Inputs are small multiples of 1/4, so that sums of eight ranks are exact.
class CheckedRows {
public:
    static constexpr float kEpsilon = 0.25F;  // shows in each output

    CheckedRows(symm::Rank& rank, symm::Communicator& communicator, symm::DataType type,
                unsigned rows, unsigned hidden, bool in_windows = true)
        : rank_(rank),
          bytes_(std::size_t{rows} * hidden * symm::size_of(type)),
          out_(bytes_),
          weight_(hidden * symm::size_of(type)),
          no_window_(2 * bytes_),
          rows_{in_windows ? communicator.allocate(bytes_) : no_window_.address(),
                in_windows ? communicator.allocate(bytes_) : no_window_.address() + bytes_,
                out_.address(),
                weight_.address(),
                rows,
                hidden,
                type,
                kEpsilon} {}

    const RmsNormRows& rows() const { return rows_; }

    /// Fills the inputs of a call, and poisons its output. Collective.
    void fill(unsigned call) {
        with_row_type(rows_.type, [&](auto zero) {
            using T = decltype(zero);
            upload<T>(rows_.x, count(), [&](std::size_t i) { return x(rank_.rank(), call, i); });
            upload<T>(rows_.residual, count(), [&](std::size_t i) { return before(call, i); });
            upload<T>(rows_.weight, rows_.hidden, weight);
        });
        symm::fill(rows_.out, 0xff, bytes_);
        rank_.bootstrap().barrier("inputs are written");
    }

    /// Throws std::runtime_error if a residual is wrong, or an output by more than one rounding of
    /// its type; or if the ranks' outputs differ. Collective.
    void check(unsigned call) const {
        std::uint64_t bits = 0;
        with_row_type(rows_.type, [&](auto zero) { bits = check_as<decltype(zero)>(call); });
        for (const std::uint64_t other : rank_.bootstrap().allgather("bits of outputs", bits)) {
            require(other == bits, "the ranks' outputs differ in their bits");
        }
    }

private:
    std::size_t count() const { return std::size_t{rows_.rows} * rows_.hidden; }
    static float quarter(std::size_t seed) {
        return static_cast<float>(static_cast<int>(seed * 2654435761U >> 7 & 15U) - 8) / 4;
    }
    static float x(int rank, unsigned call, std::size_t i) {
        return quarter(i * 31 + static_cast<unsigned>(rank) * 7 + call * 1009);
    }
    static float before(unsigned call, std::size_t i) { return quarter(i * 17 + call * 271 + 5); }
    static float weight(std::size_t i) { return static_cast<float>(1 + i % 5) / 4; }

    template <class T, class Value>
    static void upload(CUdeviceptr to, std::size_t count, const Value& value) {
        std::vector<T> values(count);
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = static_cast<T>(value(i));
        }
        symm::copy_to_device(to, values.data(), count * sizeof(T));
    }

    /// A sum of the bits of all outputs.
    template <class T>
    std::uint64_t check_as(unsigned call) const {
        std::vector<T> residual(count());
        std::vector<T> out(count());
        symm::copy_to_host(residual.data(), rows_.residual, bytes_);
        symm::copy_to_host(out.data(), rows_.out, bytes_);
        const double rounding = sizeof(T) == 4 ? 2e-6 : std::is_same_v<T, __half> ? 1e-3 : 8e-3;
        std::uint64_t bits = 0;
        for (std::size_t row = 0; row < rows_.rows; ++row) {
            const std::size_t first = row * rows_.hidden;
            double squares = 0;
            for (std::size_t i = first; i < first + rows_.hidden; ++i) {
                float sum = 0;
                for (int p = 0; p < rank_.size(); ++p) {
                    sum += x(p, call, i);
                }
                const auto expected = static_cast<float>(static_cast<T>(sum + before(call, i)));
                const auto seen = static_cast<float>(residual[i]);
                require(seen == expected, "rank {}: residual {} of row {} is {}, not {}",
                        rank_.rank(), i - first, row, seen, expected);
                squares += static_cast<double>(expected) * expected;
            }
            const double rms = std::sqrt(squares / rows_.hidden + rows_.epsilon);
            for (std::size_t i = first; i < first + rows_.hidden; ++i) {
                const double expected = static_cast<float>(residual[i]) / rms * weight(i - first);
                const auto seen = static_cast<float>(out[i]);
                require(std::abs(seen - expected) <= rounding * std::abs(expected),
                        "rank {}: output {} of row {} is {}, not {}", rank_.rank(), i - first, row,
                        seen, expected);
                bits = bits * 31 + std::bit_cast<std::uint32_t>(seen);
            }
        }
        return bits;
    }

    symm::Rank& rank_;
    std::size_t bytes_;
    symm::DeviceMemory out_;
    symm::DeviceMemory weight_;
    symm::DeviceMemory no_window_;  ///< x and the residual, if they are in none.
    RmsNormRows rows_;
};

}  // namespace symm::collectives
