#include "labs/06_allreduce/data_type.hpp"

#include <fmt/core.h>

#include "common/sys/usage_error.hpp"

namespace symm {

std::string_view name_of(DataType type) {
    return type == DataType::kFloat ? "float" : "bfloat16";
}

DataType data_type(std::string_view name) {
    if (name == "float" || name == "float32") {
        return DataType::kFloat;
    }
    if (name == "bfloat16" || name == "bf16") {
        return DataType::kBfloat16;
    }
    throw UsageError(fmt::format("--dtype {}: say float or bfloat16", name));
}

}  // namespace symm
