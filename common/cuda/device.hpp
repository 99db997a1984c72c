#pragma once
/// \file
/// A GPU and its primary context.

#include <cuda.h>

#include <string>

#include "common/sys/owner.hpp"

namespace symm {

/// How many GPUs the driver in use sees. Initialises the driver. Throws CudaError.
int device_count();

/// The driver's handle of device `ordinal`, which its calls take. On every machine so far both are
/// the same number, but no manual promises that. Throws CudaError.
CUdevice device_handle(int ordinal);

/// An attribute of device `ordinal` (cuDeviceGetAttribute). Throws CudaError.
int device_attribute(int ordinal, CUdevice_attribute attribute);

/// The device's UUID: the same in every process, whatever ordinal it has there. Throws CudaError.
CUuuid device_uuid(int ordinal);

/// Whether kernels of `device` can access memory of `owner`: its own, or a peer's
/// (cuDeviceCanAccessPeer, which says no for a device and itself). Throws CudaError.
[[nodiscard]] bool can_access(int device, int owner);

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
    /// Retains the context and makes it the calling thread's current one. Initialises the driver.
    /// Throws CudaError.
    explicit Device(int ordinal);

    int ordinal() const { return value_.ordinal; }
    CUdevice handle() const { return value_.device; }
    CUcontext context() const { return value_.context; }
    /// Makes this device's context the calling thread's current one.
    void make_current() const;
    std::string name() const;
    std::size_t total_memory() const;
    static void give_back(const PrimaryContext& retained);
};

/// Makes a context the calling thread's current one, and restores the caller's when the scope is
/// left. A caller may use a library from any thread, with any context current or none, so public
/// functions begin with one. Costs one driver call if the context is current already.
class CurrentContext {
public:
    /// For a scope that changes the context itself. The driver is initialised. Throws CudaError.
    CurrentContext();
    /// Throws CudaError.
    explicit CurrentContext(CUcontext context);
    explicit CurrentContext(const Device& device) : CurrentContext(device.context()) {}
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;
    ~CurrentContext();

private:
    CUcontext callers_ = nullptr;
    bool changed_ = true;
};

}  // namespace symm
