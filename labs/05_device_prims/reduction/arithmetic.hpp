#pragma once
/// \file
/// What a call computes.

#include <cstddef>

#include "labs/05_device_prims/reduction/collective.hpp"
#include "labs/05_device_prims/reduction/data_type.hpp"

namespace symm {

/// The collective, the element type, the operation and the root.
struct Arithmetic {
    DataType type = DataType::kFloat;
    ReduceOp op = ReduceOp::kSum;
    Collective collective = Collective::kAllReduce;
    int root = 0;  ///< Of a Broadcast or a Reduce.

    bool operator==(const Arithmetic&) const = default;
    /// How many parts of `count` elements a buffer has: one for each rank, or one.
    std::size_t in_parts(int ranks) const {
        return row_of(collective).in_has_parts() ? static_cast<std::size_t>(ranks) : 1;
    }
    std::size_t out_parts(int ranks) const {
        return row_of(collective).out_has_parts() ? static_cast<std::size_t>(ranks) : 1;
    }
    /// Those of the larger buffer.
    std::size_t parts(int ranks) const { return in_parts(ranks) * out_parts(ranks); }
};

}  // namespace symm
