#pragma once
/// \file
/// A GPU and its primary context.

#include <cuda.h>

#include <string>
#include <utility>

namespace symm {

/// GPUs the driver in use sees. Initialises the driver.
int device_count();

/// The driver's handle of device `ordinal`, which is what its calls want: that both are the same
/// number on every machine so far is promised nowhere. Throws CudaError.
CUdevice device_handle(int ordinal);

/// Whether kernels of `device` can reach memory of `owner`: a device its own, or a peer's
/// (cuDeviceCanAccessPeer, which is asked about two devices, never about one). Throws CudaError.
bool can_access(int device, int owner);

/// Holds the primary context of one device, which the runtime and every library share. Move-only.
/// Source: CUDA Driver API, "Primary Context Management".
class Device {
public:
    /// Retains the context and makes it the calling thread's current one.
    /// Throws std::out_of_range for an ordinal that is no device, CudaError otherwise.
    explicit Device(int ordinal);
    Device(Device&& other) noexcept
        : ordinal_(other.ordinal_),
          handle_(other.handle_),
          context_(std::exchange(other.context_, nullptr)) {}
    Device& operator=(Device&& other) noexcept {
        std::swap(ordinal_, other.ordinal_);
        std::swap(handle_, other.handle_);
        std::swap(context_, other.context_);
        return *this;
    }
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    ~Device();

    int ordinal() const { return ordinal_; }
    CUdevice handle() const { return handle_; }
    CUcontext context() const { return context_; }
    /// Makes this device's context the calling thread's current one.
    void make_current() const;
    int attribute(CUdevice_attribute attribute) const;
    std::string name() const;
    std::size_t total_memory() const;

private:
    struct Retained {};
    Device(Retained, int ordinal);

    int ordinal_;
    CUdevice handle_ = 0;
    CUcontext context_ = nullptr;
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
