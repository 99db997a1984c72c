#pragma once
/// \file
/// Rows for AllReduceRmsNorm, and the check of its results against a reference in double.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
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

/// What a call has beyond x, residual and weights of one type.
struct RowsOptions {
    bool residual = true;
    bool float_weights = false;
    float weight_offset = 0;
    bool bias = false;
    bool float8 = false;
};

/// Buffers of one rank and their contents; x and residual are in windows unless `in_windows` is
/// false. Inputs are small multiples of 1/4, so that sums of eight ranks are exact. But one sum is
/// another if it is rounded before the residual is added.
class CheckedRows {
public:
    static constexpr float kEpsilon = 0.25F;  // shows in each output
    static constexpr std::size_t kRounded = 7;

    CheckedRows(symm::Rank& rank, symm::Communicator& communicator, symm::DataType type,
                unsigned rows, unsigned hidden, bool in_windows = true,
                const RowsOptions& options = {})
        : rank_(rank),
          bytes_(std::size_t{rows} * hidden * symm::size_of(type)),
          out_(bytes_),
          weight_(hidden * sizeof(float)),
          bias_(hidden * sizeof(float)),
          out_scale_(sizeof(float)),
          no_window_(2 * bytes_),
          rows_{in_windows ? communicator.allocate(bytes_) : no_window_.address(),
                in_windows ? communicator.allocate(bytes_) : no_window_.address() + bytes_,
                out_.address(),
                weight_.address(),
                rows,
                hidden,
                type,
                kEpsilon,
                options.float_weights,
                options.weight_offset,
                options.bias ? bias_.address() : 0,
                options.float8 ? out_scale_.address() : 0} {
        if (!options.residual) {
            rows_.residual = 0;
        }
        const float scale = out_scale();
        symm::copy_to_device(out_scale_.address(), &scale, sizeof(scale));
    }

    const RmsNormRows& rows() const { return rows_; }

    /// Fills the inputs of a call, and poisons its output. Collective.
    void fill(unsigned call) {
        with_row_type(rows_.type, [&](auto zero) {
            using T = decltype(zero);
            upload<T>(rows_.x, count(), [&](std::size_t i) { return x(rank_.rank(), call, i); });
            if (rows_.residual != 0) {
                upload<T>(rows_.residual, count(), [&](std::size_t i) { return before(call, i); });
            }
            if (!rows_.float_weights) {
                upload<T>(weight_.address(), rows_.hidden, weight);
                upload<T>(bias_.address(), rows_.hidden, bias);
            }
        });
        if (rows_.float_weights) {  // which no shorter type can hold
            upload<float>(weight_.address(), rows_.hidden, float_weight);
            upload<float>(bias_.address(), rows_.hidden, bias);
        }
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
    /// Of half and bfloat16 alone.
    bool is_rounded(std::size_t i) const {
        return i == kRounded && rows_.type != symm::DataType::kFloat && rows_.residual != 0;
    }
    float x(int rank, unsigned call, std::size_t i) const {
        if (is_rounded(i)) {  // the next number of the type is greater by two
            const float large = rows_.type == symm::DataType::kHalf ? 2048 : 256;
            return rank == 0 ? large : rank == 1 ? 1 : 0;
        }
        return quarter(i * 31 + static_cast<unsigned>(rank) * 7 + call * 1009);
    }
    float before(unsigned call, std::size_t i) const {
        return is_rounded(i) ? 1 : quarter(i * 17 + call * 271 + 5);
    }
    /// With one of them some outputs are beyond float8's largest.
    float out_scale() const { return rows_.type == symm::DataType::kHalf ? 0.75F : 0x1p-8F; }
    static float weight(std::size_t i) { return static_cast<float>(1 + i % 5) / 4; }
    static float float_weight(std::size_t i) { return weight(i) * 1.0051F; }
    static float bias(std::size_t i) { return static_cast<float>(i % 7) / 8; }

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
        if (rows_.residual != 0) {
            symm::copy_to_host(residual.data(), rows_.residual, bytes_);
        }
        const std::vector<float> out = outputs<T>();
        const double rounding = sizeof(T) == 4 ? 2e-6 : std::is_same_v<T, __half> ? 1e-3 : 8e-3;
        std::uint64_t bits = 0;
        for (std::size_t row = 0; row < rows_.rows; ++row) {
            const std::size_t first = row * rows_.hidden;
            std::vector<float> sums(rows_.hidden);
            double squares = 0;
            for (std::size_t i = 0; i < rows_.hidden; ++i) {
                sums[i] = static_cast<float>(static_cast<T>(sum(call, first + i)));
                squares += static_cast<double>(sums[i]) * sums[i];
                const auto seen = static_cast<float>(residual[first + i]);
                require(rows_.residual == 0 || seen == sums[i],
                        "rank {}: residual {} of row {} is {}, not {}", rank_.rank(), i, row, seen,
                        sums[i]);
            }
            const double rms = std::sqrt(squares / rows_.hidden + rows_.epsilon);
            for (std::size_t i = 0; i < rows_.hidden; ++i) {
                const float seen = out[first + i];
                const double scaled = sums[i] / rms * (factor(i) + rows_.weight_offset);
                const double exact = rows_.bias == 0 ? scaled : scaled + bias(i);
                const double sizes = std::abs(scaled) + std::abs(exact);
                const bool is_right = rows_.out_scale == 0
                                          ? std::abs(seen - exact) <= rounding * sizes / 2
                                          : is_rounded_to_float8(seen, exact / out_scale());
                require(is_right, "rank {}: output {} of row {} is {}, not {}", rank_.rank(), i,
                        row, seen, exact);
                bits = bits * 31 + std::bit_cast<std::uint32_t>(seen);
            }
        }
        return bits;
    }
    float sum(unsigned call, std::size_t i) const {
        float sum = rows_.residual == 0 ? 0 : before(call, i);
        for (int p = 0; p < rank_.size(); ++p) {
            sum += x(p, call, i);
        }
        return sum;
    }
    double factor(std::size_t i) const { return rows_.float_weights ? float_weight(i) : weight(i); }

    template <class T>
    std::vector<float> outputs() const {
        const auto read = [&]<class Element>(Element) {
            std::vector<Element> elements(count());
            symm::copy_to_host(elements.data(), rows_.out, count() * sizeof(Element));
            return std::vector<float>(elements.begin(), elements.end());
        };
        return rows_.out_scale == 0 ? read(T{}) : read(__nv_fp8_e4m3{});
    }
    /// e4m3 has three bits behind the first one, at least 2^-9, at most 448.
    static bool is_rounded_to_float8(double seen, double exact) {
        return std::abs(exact) > 448
                   ? seen == std::copysign(448, exact)
                   : std::abs(seen - exact) <= std::max(std::abs(exact) * 0.0626, 0x1.01p-10);
    }

    symm::Rank& rank_;
    std::size_t bytes_;
    symm::DeviceMemory out_;
    symm::DeviceMemory weight_;
    symm::DeviceMemory bias_;
    symm::DeviceMemory out_scale_;
    symm::DeviceMemory no_window_;  ///< x and the residual, if they are in none.
    RmsNormRows rows_;
};

}  // namespace symm::collectives
