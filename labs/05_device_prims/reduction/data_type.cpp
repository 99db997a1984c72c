#include "labs/05_device_prims/reduction/data_type.hpp"

#include "common/sys/named.hpp"

namespace symm {
namespace {

constexpr std::array<std::string_view, kDataTypes.size()> kTypeNames{
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16"};
constexpr std::array<std::string_view, kReduceOps.size()> kOpNames{"sum", "prod", "max", "min",
                                                                   "avg"};

}  // namespace

std::string_view name_of(DataType type) {
    return name_among(kTypeNames, "DataType", type);
}

std::string_view name_of(ReduceOp op) {
    return name_among(kOpNames, "ReduceOp", op);
}

void require_known(DataType type, ReduceOp op) {
    require_named(kTypeNames, "DataType", type);
    require_named(kOpNames, "ReduceOp", op);
}

DataType data_type(std::string_view name) {
    return named<DataType>(kTypeNames, "--dtype", name == "bf16" ? "bfloat16" : name);
}

ReduceOp reduce_op(std::string_view name) {
    return named<ReduceOp>(kOpNames, "--op", name);
}

}  // namespace symm
