#pragma once
/// \file
/// Moves data between devices, several transfers at once, timed and checked.
///
/// One run, as nvbandwidth does it:
///
///     host      poison | queue everything        | open the gate | wait | compare every word
///     stream 0         | gate, start, copies, end |  ... moving ... |
///     stream 1         | gate, start, copies, end |  ... moving ... |
///
/// The gate is a kernel that waits for a flag. It lets all streams begin together, however long the
/// host takes to queue their work. An untimed copy before it warms up. The poison (bytes that no
/// source holds) and the comparison make sure that the time was spent on moving the right data.
///
/// Source: NVIDIA/nvbandwidth, memcpy.cpp and kernels.cu (spinKernel, simpleCopyKernel).

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "common/cuda/gpu.hpp"
#include "labs/02_access/peer_matrix.hpp"
#include "labs/02_access/shared_buffer.hpp"

namespace symm {

/// Who moves the bytes from the source's memory to the destination's.
enum class Method {
    kLoads,       ///< A kernel on the destination, which loads from the source's memory.
    kStores,      ///< A kernel on the source, which stores to the destination's memory.
    kCopyEngine,  ///< The source's copy engine (cuMemcpyAsync); no multiprocessor takes part.
};
inline constexpr Method kMethods[] = {Method::kLoads, Method::kStores, Method::kCopyEngine};

/// `loads`, `stores`, `copy engine`.
std::string_view name_of(Method method);

/// Data that goes from one device's memory to another's.
struct Transfer {
    int source;
    int destination;
};

/// The access that a transfer takes: for loads the destination's to the source's memory, else the
/// source's to the destination's.
Pair access_for(Method method, const Transfer& transfer);

/// Owns two buffers on each device, outgoing and incoming, that its peers may use.
class TransferBench {
public:
    /// `bytes` (a multiple of 16, not 0) per buffer. `gpus[i]` is device i; they and the matrix
    /// must outlive this. Throws CudaError.
    TransferBench(std::span<const Gpu> gpus, const PeerMatrix& matrix, std::size_t bytes);

    int devices() const { return static_cast<int>(gpus_.size()); }
    /// Two devices, and the access that the transfer takes is usable.
    bool possible(Method method, const Transfer& transfer) const;

    /// Moves a buffer `iterations` times for each of the transfers, all at once, and returns each
    /// one's rate in GB/s (10^9 bytes per second). No device may be the source of two transfers, or
    /// the destination. Throws std::invalid_argument for a transfer that is not possible,
    /// std::runtime_error naming a transfer that delivered wrong data or did not end, CudaError.
    std::vector<double> run(Method method, std::span<const Transfer> transfers, int iterations);

private:
    void queue(Method method, const Transfer& transfer, int iterations) const;
    const Gpu& gpu(int device) const { return gpus_[static_cast<std::size_t>(device)]; }
    const Gpu& actor(Method method, const Transfer& transfer) const {
        return gpu(access_for(method, transfer).accessor);
    }

    std::span<const Gpu> gpus_;
    const PeerMatrix* matrix_;
    std::size_t bytes_;
    std::vector<SharedBuffer> outgoing_;
    std::vector<SharedBuffer> incoming_;
};

}  // namespace symm
