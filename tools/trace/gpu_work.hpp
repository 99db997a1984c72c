#pragma once
/// \file
/// When GPUs run kernels and copies, as CUPTI's activity records say.
///
/// CUPTI gives the times of all GPUs of a process on one clock.
///
/// Source: CUPTI, "Activity API".

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace symm {

/// A kernel or a copy that a GPU has run.
struct GpuWork {
    std::string name;  ///< The kernel's, or `copy`.
    std::uint32_t device;
    std::uint32_t stream;  ///< A number, the same for all work of a stream.
    std::uint64_t begin_ns;
    std::uint64_t end_ns;
    std::uint64_t bytes;  ///< The size of a copy; 0 for a kernel.
};

/// The work that all GPUs of this process run during `step`, ordered by start time. `step`
/// has to wait for its work. Throws std::runtime_error if CUPTI is not found or refuses. Only for
/// the real driver.
std::vector<GpuWork> gpu_work_of(const std::function<void()>& step);

}  // namespace symm
