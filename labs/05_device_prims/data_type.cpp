#include "labs/05_device_prims/data_type.hpp"

#include <fmt/core.h>

#include <string>

#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

template <class All>
auto named(const All& all, std::string_view option, std::string_view name) {
    std::string names;
    for (const auto one : all) {
        if (name_of(one) == name) {
            return one;
        }
        names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(one));
    }
    throw UsageError(fmt::format("{} {}: say one of {}", option, name, names));
}

}  // namespace

std::string_view name_of(DataType type) {
    constexpr std::array<std::string_view, 7> kNames{"float", "half",  "bfloat16", "double",
                                                     "int32", "int64", "uint8"};
    return kNames.at(static_cast<std::size_t>(type));
}

std::string_view name_of(ReduceOp op) {
    constexpr std::array<std::string_view, 5> kNames{"sum", "prod", "min", "max", "avg"};
    return kNames.at(static_cast<std::size_t>(op));
}

DataType data_type(std::string_view name) {
    return named(kDataTypes, "--dtype", name == "bf16" ? "bfloat16" : name);
}

ReduceOp reduce_op(std::string_view name) {
    return named(kReduceOps, "--op", name);
}

}  // namespace symm
