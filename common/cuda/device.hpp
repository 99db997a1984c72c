#pragma once
/// \file
/// A GPU and its primary context.

#include <cuda.h>

#include <string>

#include "common/sys/owner.hpp"

namespace symm {

/// GPUs the driver in use sees. Initialises the driver.
int device_count();

/// The driver's handle of device `ordinal`, which is what its calls want: that both are the same
/// number on every machine so far is promised nowhere. Throws CudaError.
CUdevice device_handle(int ordinal);

/// The device's UUID: the same in every process, whatever ordinal it has there. Throws CudaError.
CUuuid device_uuid(int ordinal);

/// Whether kernels of `device` can reach memory of `owner`: a device its own, or a peer's
/// (cuDeviceCanAccessPeer, which is asked about two devices, never about one). Throws CudaError.
bool can_access(int device, int owner);

/// A reference to the primary context of a device.
struct PrimaryContext {
    int ordinal = 0;
    CUdevice device = 0;
    CUcontext context = nullptr;
    friend bool operator==(const PrimaryContext&, const PrimaryContext&) = default;
};

/// Holds the primary context of one device, which the runtime and every library share. Move-only.
/// Source: CUDA Driver API, "Primary Context Management".
class Device : public Owner<Device, PrimaryContext> {
public:
    /// Retains the context and makes it the calling thread's current one.
    /// Throws std::out_of_range for an ordinal that is no device, CudaError otherwise.
    explicit Device(int ordinal);

    int ordinal() const { return value_.ordinal; }
    CUdevice handle() const { return value_.device; }
    CUcontext context() const { return value_.context; }
    /// Makes this device's context the calling thread's current one.
    void make_current() const;
    int attribute(CUdevice_attribute attribute) const;
    std::string name() const;
    std::size_t total_memory() const;
    static void give_back(const PrimaryContext& retained);
};

/// Makes a context current for a scope, then brings the former one back.
class CurrentContext {
public:
    explicit CurrentContext(CUcontext context);
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;
    ~CurrentContext();
};

}  // namespace symm
