#pragma once
/// \file
/// A device with what a program needs to run kernels on it: a stream, and memory for results.

#include <cuda.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "common/cuda/device.hpp"
#include "common/cuda/pinned_memory.hpp"
#include "common/cuda/stream.hpp"

namespace symm {

/// A launch's number of blocks, and of threads in each.
struct LaunchShape {
    unsigned blocks;
    unsigned threads;
};

/// One device in use. Move-only. Its constructor leaves the device's context current.
class Gpu {
public:
    /// Throws CudaError.
    explicit Gpu(int ordinal);

    int ordinal() const { return device_.ordinal(); }
    const Device& device() const { return device_; }
    CUstream stream() const { return stream_.get(); }
    const Stream& owned_stream() const { return stream_; }
    void make_current() const { device_.make_current(); }
    /// Waits for all that was queued on the stream. Throws as Stream::synchronize.
    void wait(std::string_view what) const { stream_.synchronize(what); }

    /// Enough threads to keep a link busy, all of them resident at once.
    LaunchShape shape() const { return shape_; }
    static constexpr unsigned kMostBlocks = 1024;

    /// Pinned memory of kResultBytes, where kernels leave results for the host.
    void* results() const { return results_.data(); }
    static constexpr std::size_t kResultBytes = 64 * 1024;

private:
    Device device_;
    Stream stream_;
    PinnedMemory results_;
    LaunchShape shape_;
};

/// One Gpu for each device that the driver sees: `all_gpus()[i]` is device i. Throws CudaError.
std::vector<Gpu> all_gpus();

/// Waits for the devices' streams when a scope is left, however it is left. Declare it after the
/// buffers that queued work uses: then an exception cannot unmap them under a running kernel.
class Drained {
public:
    /// `gpus` must outlive this.
    explicit Drained(std::span<const Gpu> gpus) : gpus_(gpus) {}
    explicit Drained(const Gpu& gpu) : gpus_(&gpu, 1) {}
    Drained(const Drained&) = delete;
    Drained& operator=(const Drained&) = delete;
    ~Drained();

private:
    std::span<const Gpu> gpus_;
};

}  // namespace symm
