#pragma once
/// \file
/// How fast the links are: one table of bandwidth and latency.
///
///     from  to         loads GB/s  stores GB/s  copy engine GB/s  latency ns
///     ----------------------------------------------------------------------
///     0     0                                                            146
///     0     1               374.1        370.0             396.2         855
///     ...
///     each  i + 1           337.1        365.6             391.7
///
/// A line with two numbers is one transfer by itself, from the memory of one device to the memory
/// of another, and the time of one load by the device `to` from the memory of `from`. In a line
/// `each` all devices send at once, device i to device i + 1 (i + 2, ...), and the slowest of their
/// rates is shown: a collective waits for the slowest.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/cuda/gpu.hpp"
#include "labs/02_access/peer_matrix.hpp"

namespace symm {

/// A line of the table. What was not measured is empty: pairs that are not used.
struct LinkSpeed {
    std::string from;
    std::string to;
    std::array<std::optional<double>, 3> gb_per_s;  ///< By each of kMethods.
    std::optional<double> latency_ns;
};

/// Measures all lines with transfers of `bytes` (a multiple of 16, not 0), each `iterations` times.
/// `gpus[i]` is device i. Every transfer's data is compared. Throws as TransferBench::run().
std::vector<LinkSpeed> measure_links(std::span<const Gpu> gpus, const PeerMatrix& matrix,
                                     std::size_t bytes, int iterations);

/// The table.
std::string table_of(std::span<const LinkSpeed> speeds);

}  // namespace symm
