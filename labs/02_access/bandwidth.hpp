#pragma once
/// \file
/// How fast the links are: one table of bandwidth and latency.
///
///     from  to         loads GB/s  stores GB/s  copy engine GB/s  pull GB/s  latency ns
///     -----------------------------------------------------------------------------
///     0     0                   -            -                 -          -         146
///     0     1               374.1        370.0             396.2      395.8         855
///     ...
///     each  i + 1           337.1        365.6             391.7      372.9
///
/// A line with two numbers is one transfer by itself, from the memory of one device to the memory
/// of another, and the time of one load by the device `to` from the memory of `from`. In a line
/// `each` all devices send at once, device i to device i + 1 (i + 2, ...), and the slowest of their
/// rates is shown: a collective waits for the slowest.
///
/// All streams of a measurement start together, and all data that arrives is compared
/// (BANDWIDTH.md).
///
/// Source: NVIDIA/nvbandwidth, memcpy.cpp and kernels.cu (spinKernel, simpleCopyKernel).

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/cuda/gpu.hpp"
#include "labs/02_access/access.hpp"
#include "labs/02_access/peer_matrix.hpp"

namespace symm {

/// The unit that moves the bytes from the source's memory to the destination's.
enum class Method {
    kLoads,       ///< A kernel on the destination, which loads from the source's memory.
    kStores,      ///< A kernel on the source, which stores to the destination's memory.
    kCopyEngine,  ///< The source's copy engine (cuMemcpyAsync); no multiprocessor takes part.
    kPull,        ///< The destination's copy engine.
};
inline constexpr Method kMethods[] = {Method::kLoads, Method::kStores, Method::kCopyEngine,
                                      Method::kPull};

/// The direction of a transfer: from one device's memory to another's.
struct Route {
    int source;
    int destination;
};

/// Owns two buffers on each device, outgoing and incoming, which the device's peers may access.
class TransferBench {
public:
    /// `bytes` (a multiple of 16, not 0) per buffer. `gpus[i]` is device i; they and the matrix
    /// must outlive this. Throws CudaError.
    TransferBench(std::span<const Gpu> gpus, const PeerMatrix& matrix, std::size_t bytes);

    /// Runs `transfers` at the same time, except impossible ones, each `iterations` times, and
    /// compares the data that arrived. A transfer is possible between two different devices if the
    /// one that makes the access may use the other's memory. Returns the rate of the slowest one
    /// in GB/s (10^9 bytes per second); nothing if none is possible. No device may be the source
    /// of two transfers, or the destination of two. Throws std::runtime_error for a transfer that
    /// delivered wrong data or did not end, CudaError.
    std::optional<double> run(Method method, std::span<const Route> transfers, int iterations);

private:
    /// A transfer that is being measured; defined in the .cpp file.
    struct Running;

    std::span<const Gpu> gpus_;
    const PeerMatrix* matrix_;
    std::size_t bytes_;
    std::vector<SharedBuffer> outgoing_;
    std::vector<SharedBuffer> incoming_;
};

/// Measures and returns the table, with transfers of `bytes` (a multiple of 16, not 0), each
/// `iterations` times. `gpus[i]` is device i. Unusable pairs have `-`. Throws as
/// TransferBench::run().
std::string measure_links(std::span<const Gpu> gpus, const PeerMatrix& matrix, std::size_t bytes,
                          int iterations);

}  // namespace symm
