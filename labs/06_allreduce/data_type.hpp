#pragma once
/// \file
/// What an AllReduce adds up: the types and operations, by the names people type.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace symm {

enum class DataType : std::uint32_t { kFloat, kBfloat16 };
enum class ReduceOp : std::uint32_t { kSum };

/// Bytes of one element.
constexpr std::size_t size_of(DataType type) {
    return type == DataType::kFloat ? 4 : 2;
}

/// `float`, `bfloat16`.
std::string_view name_of(DataType type);
/// The type by its name. Throws UsageError for another, naming those there are.
DataType data_type(std::string_view name);

}  // namespace symm
