#pragma once
/// \file
/// The calls of the CUDA driver that a piece of code makes, with their arguments.
///
/// | driver   | how calls are seen                                                                |
/// |----------|-----------------------------------------------------------------------------------|
/// | emulated | calls go through a table (common/cuda/driver.hpp): another is put in its place    |
/// | real     | CUPTI, NVIDIA's library for profilers, calls us back at the end of each call      |
///
/// NCCL and the CUDA runtime take the driver's functions from the driver itself
/// (cuGetProcAddress), so nothing that is put between a program and its libraries sees their calls.
/// CUPTI does, because the driver itself tells it.
///
/// Source: CUPTI, "Callback API", domain CUPTI_CB_DOMAIN_DRIVER_API.

#include <functional>
#include <string>
#include <vector>

namespace symm {

/// One call of the driver.
struct DriverCall {
    std::string name;  ///< As the driver has it: `cuMemGetInfo_v2`.
    std::string text;  ///< With arguments, see arguments.hpp; and the result, if it failed.
    bool failed;
};

/// The calls that the calling thread makes in `step`, in their order. Other threads' calls are left
/// out. From any thread. From the first use on, until the process ends, each call of the driver
/// costs some nanoseconds more. Throws what `step` throws, and std::runtime_error if the driver
/// is real and CUPTI is not found.
std::vector<DriverCall> driver_calls_of(const std::function<void()>& step);

/// A list as people read it: calls that follow each other several times are written once, with the
/// arguments of the first time; calls that only ask for something, or select a context, are counted
/// at the end. Lines begin with four blanks, and have at most 100 columns.
std::vector<std::string> folded(const std::vector<DriverCall>& calls);

}  // namespace symm
