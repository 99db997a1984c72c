#pragma once
/// \file
/// New inputs for a rung, and a check of every element of its outputs.

#include <cstddef>

#include "labs/05_device_prims/reduction/result_check.hpp"
#include "labs/06_allreduce/algorithms/ladder/ladder.hpp"

namespace symm::ladder {

/// One rank's. All ranks prepare the same calls in the same order.
class LadderCheck {
public:
    LadderCheck(int rank, int ranks) : verifier_(rank, ranks) {}

    /// Queues an input that was not used before, a poisoned output and a residual of ones.
    void prepare(const Stream& stream, const Buffers& buffers, std::size_t count);
    /// Checks the outputs of one call, and overwrites them. The call must have ended. Throws
    /// std::runtime_error with a wrong element.
    void check(const Stream& stream, const Buffers& buffers, std::size_t count) const;

private:
    Verifier verifier_;
};

}  // namespace symm::ladder
