#pragma once
/// \file
/// The element types and operations of a collective, by the names that users type.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/sys/named.hpp"

namespace symm {

/// The numbers are those of nccl.h (ncclDataType_t).
enum class DataType : std::uint32_t {
    kInt8,
    kUint8,
    kInt32,
    kUint32,
    kInt64,
    kUint64,
    kHalf,
    kFloat,
    kDouble,
    kBfloat16
};
/// How two elements become one. kAvg is the sum, divided by the number of ranks at the end. kMax
/// and kMin prefer a number to a NaN, as in NCCL, so a result is a NaN only where all ranks have
/// one; -0 is less than +0. The numbers are those of nccl.h (ncclRedOp_t).
enum class ReduceOp : std::uint32_t { kSum, kProd, kMax, kMin, kAvg };

inline constexpr std::array kDataTypes{
    DataType::kInt8,   DataType::kUint8, DataType::kInt32, DataType::kUint32, DataType::kInt64,
    DataType::kUint64, DataType::kHalf,  DataType::kFloat, DataType::kDouble, DataType::kBfloat16};
inline constexpr std::array kReduceOps{ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax,
                                       ReduceOp::kMin, ReduceOp::kAvg};

/// Bytes of one element.
constexpr std::size_t size_of(DataType type) {
    switch (type) {
        case DataType::kDouble:
        case DataType::kInt64:
        case DataType::kUint64:
            return 8;
        case DataType::kFloat:
        case DataType::kInt32:
        case DataType::kUint32:
            return 4;
        case DataType::kHalf:
        case DataType::kBfloat16:
            return 2;
        case DataType::kInt8:
        case DataType::kUint8:
            break;
    }
    return 1;
}

constexpr bool is_floating(DataType type) {
    return type == DataType::kFloat || type == DataType::kHalf || type == DataType::kBfloat16 ||
           type == DataType::kDouble;
}
constexpr bool is_signed_integer(DataType type) {
    return type == DataType::kInt8 || type == DataType::kInt32 || type == DataType::kInt64;
}

constexpr auto names_of(DataType) {
    return names("DataType", "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float",
                 "double", "bfloat16");
}
/// Also takes `bf16`.
template <>
inline DataType named<DataType>(std::string_view option, std::string_view name) {
    return static_cast<DataType>(
        find_name(kNamesOf<DataType>.values, option, name == "bf16" ? "bfloat16" : name));
}
constexpr auto names_of(ReduceOp) {
    return names("ReduceOp", "sum", "prod", "max", "min", "avg");
}

}  // namespace symm
