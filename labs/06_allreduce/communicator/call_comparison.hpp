#pragma once
/// \file
/// SYMM_CHECK=1: the ranks compare their calls before they make them.

#include <cstdint>

#include "common/bootstrap/bootstrap.hpp"
#include "labs/05_device_prims/reduction/data_type.hpp"
#include "labs/06_allreduce/tuning/tuner.hpp"

namespace symm {

/// One rank's side.
class CallComparison {
public:
    /// Waits for all ranks. Throws std::invalid_argument, on each of them, if their calls differ.
    void compare(Bootstrap& bootstrap, const CallSize& call, ReduceOp op, Algorithm asked);

private:
    std::uint64_t calls_ = 0;
};

}  // namespace symm
