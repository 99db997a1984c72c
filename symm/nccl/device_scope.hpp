#pragma once
/// \file
/// A device's primary context, which NCCL and the CUDA runtime use, for a scope.

#include <cuda.h>

namespace symm::drop_in {

/// Makes the device's primary context current, and the caller's afterwards. Also keeps the scope's
/// calls out of a capture that another thread has begun.
class DeviceScope {
public:
    /// Throws std::runtime_error.
    explicit DeviceScope(int device);
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;
    ~DeviceScope();

private:
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  ///< Then the caller's.
};

/// Throws std::runtime_error unless the driver's call succeeded.
void check(CUresult result, const char* call);

}  // namespace symm::drop_in
