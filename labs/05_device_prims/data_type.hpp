#pragma once
/// \file
/// What a collective reduces: the element types and operations, by the names people type.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace symm {

enum class DataType : std::uint32_t { kFloat, kHalf, kBfloat16, kDouble, kInt32, kInt64, kUint8 };
/// How two elements become one. kAvg is the sum, divided by the number of ranks at the end.
enum class ReduceOp : std::uint32_t { kSum, kProd, kMin, kMax, kAvg };

inline constexpr std::array kDataTypes{DataType::kFloat,  DataType::kHalf,  DataType::kBfloat16,
                                       DataType::kDouble, DataType::kInt32, DataType::kInt64,
                                       DataType::kUint8};
inline constexpr std::array kReduceOps{ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin,
                                       ReduceOp::kMax, ReduceOp::kAvg};

/// Bytes of one element.
constexpr std::size_t size_of(DataType type) {
    switch (type) {
        case DataType::kFloat:
        case DataType::kInt32:
            return 4;
        case DataType::kHalf:
        case DataType::kBfloat16:
            return 2;
        case DataType::kDouble:
        case DataType::kInt64:
            return 8;
        case DataType::kUint8:
            break;
    }
    return 1;
}

/// `float`, `half`, `bfloat16`, `double`, `int32`, `int64` or `uint8`.
std::string_view name_of(DataType type);
/// `sum`, `prod`, `min`, `max` or `avg`.
std::string_view name_of(ReduceOp op);
/// The type or operation by its name. Throws UsageError for another, naming those there are.
DataType data_type(std::string_view name);
ReduceOp reduce_op(std::string_view name);

}  // namespace symm
