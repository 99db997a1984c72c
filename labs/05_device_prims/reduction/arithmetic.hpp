#pragma once
/// \file
/// What a call computes.

#include <cstddef>

#include "labs/05_device_prims/reduction/collective.hpp"
#include "labs/05_device_prims/reduction/data_type.hpp"

namespace symm {

/// The collective, the element type and the operation.
struct Arithmetic {
    DataType type = DataType::kFloat;
    ReduceOp op = ReduceOp::kSum;
    Collective collective = Collective::kAllReduce;

    bool operator==(const Arithmetic&) const = default;
    /// How many parts of `count` elements the larger buffer has: one for each rank, or one.
    std::size_t parts(int ranks) const {
        const bool has_parts =
            collective == Collective::kReduceScatter || collective == Collective::kAllGather;
        return has_parts ? static_cast<std::size_t>(ranks) : 1;
    }
};

}  // namespace symm
