#pragma once
/// \file
/// The ladder's rungs, then those of the fused call, and one rank's side of one of them: its memory
/// and its calls.

#include <cuda.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "common/cuda/device_memory.hpp"
#include "common/cuda/gpu.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/06_allreduce/algorithms/ladder/1_through_host.hpp"
#include "labs/06_allreduce/algorithms/ladder/rung.hpp"

namespace symm::ladder {

struct RungRow {
    std::string_view name;
    std::string_view idea;  ///< What it does unlike the rung before.
    unsigned char empty;    ///< Each byte of an empty slot.
    bool fused;             ///< It makes the fused call.
    /// Launches the kernels. Null for the first rung, which has none.
    void (*queue)(CUstream stream, LaunchShape shape, const Rung& rung);
    /// How many blocks of so many threads the current device keeps resident.
    unsigned (*resident)(unsigned threads);
};

inline constexpr std::size_t kRungs = 9;
std::span<const RungRow, kRungs> rungs();

/// A rank's buffers; `residual` is 0 but in the fused call.
struct Buffers {
    CUdeviceptr in;
    CUdeviceptr out;
    CUdeviceptr residual = 0;
};

/// One rank's side of a rung. Ranks are threads. Construction and calls are collective.
class Ladder {
public:
    /// For calls of up to `most` floats. Throws std::invalid_argument for more than
    /// kMaxBarrierRanks ranks, and if a device cannot keep a block of each rank resident.
    Ladder(Rank& rank, const RungRow& row, std::size_t most);
    Ladder(const Ladder&) = delete;
    /// If an exception destroys it, the other ranks are notified at once.
    ~Ladder();

    Buffers buffers() const {
        return {range_.local() + in_, range_.local() + out_,
                row_.fused ? residual_.address() : CUdeviceptr{0}};
    }

    /// Queues a call: `out` becomes the sum of all ranks' `in`, of `count` floats, or what
    /// fused.hpp says. The first rung waits for the stream, and returns when `out` is complete, so
    /// a graph cannot hold it.
    void call(std::size_t count, const Stream& stream);
    bool fits_a_graph() const { return row_.queue != nullptr; }
    /// Waits for the stream. Throws std::runtime_error if a wait in a kernel gave up.
    void synchronize(const Stream& stream, std::string_view what);

private:
    const RungRow& row_;
    Rank& rank_;
    std::size_t most_;
    unsigned per_sender_;
    std::size_t in_;  ///< Where the buffers are in a rank's memory, in bytes.
    std::size_t out_;
    SymmetricRange range_;
    DeviceMemory residual_;
    KernelTimeout timeout_;
    LaunchShape most_shape_;
    std::optional<ThroughHost> through_host_;
};

}  // namespace symm::ladder
