#pragma once
/// \file
/// `06_allreduce_tune FILE`: measures which algorithm is the fastest for which size, and writes
/// the tuner's table.

#include <array>
#include <string>
#include <vector>

#include "common/sys/bytes.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "labs/06_allreduce/tuning/tuning_table.hpp"

namespace symm {

/// The times of one size by each algorithm, in microseconds; infinite if it cannot do it.
struct TunedSize {
    std::size_t bytes;
    std::array<double, kTunedAlgorithms> times;
};

/// The row whose choices take the least time, as the sum over all sizes of time / best time. The
/// sizes grow.
TuningRow best_row(int ranks, CallKind kind, const std::vector<TunedSize>& sizes);

/// Measures powers of two from `sizes.first` to `sizes.last` for float and for int32, and writes
/// `table` with these two rows to the file. Prints a line per size. Collective; rank 0 writes.
void tune(Rank& rank, Communicator& communicator, ByteRange sizes, TuningTable table,
          const std::string& file);

}  // namespace symm
