#pragma once
/// \file
/// Inputs with NaNs, infinities and zeros of both signs, and what max and min make of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "common/cuda/copy.hpp"
#include "labs/05_device_prims/reduction/elements.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"

namespace symm::testing {

inline constexpr std::array kFloatingTypes{DataType::kHalf, DataType::kBfloat16, DataType::kFloat,
                                           DataType::kDouble};

/// All that an input has, in the order of max: two NaNs, then numbers.
class Extremes {
public:
    /// As many elements as there are combinations of `ranks` ranks' values.
    Extremes(DataType type, int ranks)
        : type_(type), ranks_(ranks), count_(std::size_t{1} << (3 * ranks)) {}

    std::size_t count() const { return count_; }
    std::size_t bytes() const { return count_ * size_of(type_); }

    std::vector<std::byte> input(int rank) const {
        return elements([&](std::size_t i) { return place(rank, i); });
    }
    /// Where all ranks have NaNs, it has one NaN or the other: see with_one_nan().
    std::vector<std::byte> output(ReduceOp op) const {
        return with_one_nan(elements([&](std::size_t i) {
            std::size_t all = 0;
            for (int rank = 0; rank < ranks_; ++rank) {
                const std::size_t next = place(rank, i);
                const bool is_nan = std::min(all, next) < kNans;
                all = is_nan || op == ReduceOp::kMax ? std::max(all, next) : std::min(all, next);
            }
            return all;
        }));
    }
    /// With the same bits for every NaN.
    std::vector<std::byte> with_one_nan(std::vector<std::byte> elements) const {
        with_type(type_, [&](auto zero) {
            using T = decltype(zero);
            for (std::size_t at = 0; at < elements.size(); at += sizeof(T)) {
                T element;
                std::memcpy(&element, &elements[at], sizeof(T));
                if (const auto wide = static_cast<Wide<T>>(element); wide != wide) {
                    std::memset(&elements[at], 0xff, sizeof(T));
                }
            }
        });
        return elements;
    }

private:
    static constexpr double kInfinity = std::numeric_limits<double>::infinity();
    static constexpr std::array kValues{0.0, 0.0, -kInfinity, -1.0, -0.0, 0.0, 1.0, kInfinity};
    static constexpr std::size_t kNans = 2;

    static std::size_t place(int rank, std::size_t i) {
        return i >> (3 * rank) & (kValues.size() - 1);
    }
    template <class PlaceAt>
    std::vector<std::byte> elements(const PlaceAt& place_at) const {
        std::vector<std::byte> all(bytes());
        with_type(type_, [&](auto zero) {
            using T = decltype(zero);
            for (std::size_t i = 0; i < count_; ++i) {
                const std::size_t at = place_at(i);
                const T element = static_cast<T>(static_cast<Wide<T>>(
                    at == 0 ? std::numeric_limits<double>::quiet_NaN() : kValues.at(at)));
                std::memcpy(&all[i * sizeof(T)], &element, sizeof(T));
                if (at == 1) {  // the sentinel's bits
                    std::memset(&all[i * sizeof(T)], 0xff, sizeof(T));
                }
            }
        });
        return all;
    }

    DataType type_;
    int ranks_;
    std::size_t count_;
};

/// Calls `reduce(count, type, op)` for each floating type, max and min, and compares the result at
/// `out` with what the inputs of `ranks` ranks at their `in` give. Both are device memory of 64
/// KiB.
template <class Reduce>
void expect_extremes(int rank, int ranks, CUdeviceptr in, CUdeviceptr out, const Reduce& reduce) {
    for (const DataType type : kFloatingTypes) {
        const Extremes extremes(type, ranks);
        ASSERT_LE(extremes.bytes(), std::size_t{1} << 16);
        for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
            copy_to_device(in, extremes.input(rank).data(), extremes.bytes());
            reduce(extremes.count(), type, op);
            std::vector<std::byte> result(extremes.bytes());
            copy_to_host(result.data(), out, result.size());
            EXPECT_EQ(extremes.with_one_nan(result), extremes.output(op))
                << name_of(op) << " of " << name_of(type);
        }
    }
}

}  // namespace symm::testing
