#pragma once
/// \file
/// Moves data between devices, many transfers at once, timed and checked: what the bandwidth
/// matrices are made of.
///
/// One run, as nvbandwidth does it:
///
///     host      poison | queue everything        | open the gate | wait | compare every word
///     stream 0         | gate, start, copies, end |  ... moving ... |
///     stream 1         | gate, start, copies, end |  ... moving ... |
///
/// The gate (a kernel that waits for a flag) lets all streams begin together, however long the host
/// takes to queue them. A first, untimed round warms up. Poison before and comparison after make
/// sure that the time was spent on moving the right data.
///
/// Source: NVIDIA/nvbandwidth, memcpy.cpp and kernels.cu (spinKernel, simpleCopyKernel).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/cuda/gpu.hpp"
#include "labs/02_access/peer_matrix.hpp"

namespace symm {

/// Who moves the bytes from `source` to `destination`.
enum class Method {
    kLoads,       ///< A kernel on the destination, which loads from the source.
    kStores,      ///< A kernel on the source, which stores to the destination.
    kCopyEngine,  ///< The source's copy engine (cuMemcpyAsync); no multiprocessor takes part.
};

/// `loads`, `stores`, `copy engine`.
const char* name_of(Method method);

/// Bytes that go from one device's memory to another's.
struct PeerTransfer {
    int source;
    int destination;
    Method method;
    /// Where in the source's outgoing and in the destination's incoming buffer. Multiples of 16.
    std::size_t source_offset = 0;
    std::size_t destination_offset = 0;
    std::size_t bytes = 0;  ///< A multiple of 4, not 0.

    /// The access that this takes: for loads the destination's to the source, else the reverse.
    Pair access() const;
};

/// Owns two buffers on each device, outgoing and incoming, that its peers may use. Move-only.
class TransferBench {
public:
    /// `bytes` (a multiple of 4, not 0) for each buffer. `gpus[i]` is device i; they and the matrix
    /// must outlive this. Throws CudaError.
    TransferBench(std::span<const Gpu> gpus, const PeerMatrix& matrix, std::size_t bytes);
    TransferBench(TransferBench&&) noexcept;
    TransferBench& operator=(TransferBench&&) noexcept;
    ~TransferBench();

    std::size_t bytes() const { return bytes_; }
    int devices() const;
    const PeerMatrix& matrix() const { return *matrix_; }

    /// Runs the transfers `iterations` times over, all devices at once, and returns each one's rate in
    /// gigabytes (10^9) a second. A device with several works through them one after the other, in
    /// the order given; each of their rates is over the time of all, so that their sum is the
    /// device's. Throws std::invalid_argument for a transfer that is out of bounds
    /// or whose access is not usable, std::runtime_error naming the transfer whose data is wrong or
    /// that does not end, CudaError.
    std::vector<double> run(std::span<const PeerTransfer> transfers, int iterations);

private:
    struct Lane;
    void require_possible(const PeerTransfer& transfer) const;
    void poison(std::span<const PeerTransfer> transfers) const;
    void queue(const Lane& lane, int iterations) const;
    void verify_arrival(const PeerTransfer& transfer) const;

    std::span<const Gpu> gpus_;
    const PeerMatrix* matrix_;
    std::size_t bytes_;
    struct Buffers;
    std::unique_ptr<Buffers> buffers_;
};

}  // namespace symm
