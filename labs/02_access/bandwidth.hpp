#pragma once
/// \file
/// Which transfers are measured: the matrices of nvbandwidth, over this lab's TransferBench.
///
/// | matrix | who moves at the same time | a cell is |
/// |---|---|---|
/// | pairs, one direction | one transfer | its rate |
/// | pairs, both directions | a transfer and its reverse | its rate while the reverse runs, too |
/// | all to their neighbours | device i to i + 1, for all i | its rate while all others run |
/// | all to all | every device to every other | its rate while all others run |
/// | load latency | one thread | time for one load |

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "labs/02_access/matrix.hpp"
#include "labs/02_access/transfer.hpp"

namespace symm {

/// Every pair by itself; with `both_directions` together with its reverse.
Matrix measure_pairs(TransferBench& bench, Method method, bool both_directions, int iterations);
/// All devices at once, each to the next one (the last to the first). Pairs that are not usable
/// are left out.
Matrix measure_neighbours(TransferBench& bench, Method method, int iterations);
/// All pairs at once, each with its share of the buffers.
Matrix measure_all_to_all(TransferBench& bench, Method method, int iterations);
/// How long a load takes, in nanoseconds, for every pair and for each device's own memory.
Matrix measure_latency(std::span<const Gpu> gpus, const PeerMatrix& matrix, std::size_t bytes,
                       std::uint32_t hops);

/// What measure_all() is to do.
struct BandwidthOptions {
    std::size_t bytes = 0;  ///< Of each transfer, a multiple of 4; 0: 512M on a GPU, 64K emulated.
    int iterations = 0;     ///< 0: 16 on a GPU, 2 emulated.
};

/// All of the above, for each method. `tell` is called with the name of each matrix before it is
/// measured.
PeerMeasurement measure_all(std::span<const Gpu> gpus, const PeerMatrix& matrix,
                            const BandwidthOptions& options,
                            const std::function<void(const std::string&)>& tell);

}  // namespace symm
