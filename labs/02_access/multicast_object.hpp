#pragma once
/// \file
/// The owner of a multicast object: one address for memory of several devices, its *team*.
///
///     cuMulticastCreate(number of devices, bytes)
///     cuMulticastAddDevice(device)          for each device of the team
///     cuMulticastBindMem(memory)            memory of each, at the same place of the object
///     cuMemMap, cuMemSetAccess              as for any other memory
///
/// Until every device was added, `bind()` waits, as does mapping. A thread that binds before it has
/// added all devices that it is to add would wait for ever.
///
/// **On emulated GPUs: never run on a real one by us** (docs/DESIGN.md).
///
/// Source: CUDA Driver API, "Multicast Object Management".

#include <cuda.h>

#include <cstddef>
#include <utility>

#include "common/sys/owner.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// Memory of a device at the start of an object.
struct BoundMemory {
    CUmemGenericAllocationHandle object = 0;
    int device = 0;
    std::size_t bytes = 0;
    friend bool operator==(const BoundMemory&, const BoundMemory&) = default;
};

/// Owns what is bound. Move-only. The manual does not say what becomes of memory that is freed
/// while it is bound, so this goes first: declare it after the memory, and after the object.
class MulticastBinding : public Owner<MulticastBinding, BoundMemory> {
public:
    MulticastBinding() = default;
    explicit MulticastBinding(const BoundMemory& bound) : Owner(bound) {}
    static void give_back(const BoundMemory& bound);
};

/// Owns one reference to the object. Move-only.
class MulticastObject {
public:
    /// Objects for `devices` devices, what is bound to them, and where they are mapped, are
    /// multiples of this. The smallest that the driver allows; it may recommend a larger one, which
    /// is faster. Throws CudaError.
    static std::size_t granularity(int devices);
    /// `bytes`, a multiple of the granularity, for `devices` devices. It can be exported
    /// as a file descriptor. Throws CudaError.
    static MulticastObject create(int devices, std::size_t bytes);
    /// An object that another process has created, imported (lab 03).
    explicit MulticastObject(PhysicalMemory handle) : handle_(std::move(handle)) {}
    MulticastObject() = default;

    /// Adds a device that is not in the team yet. Throws CudaError.
    void add(int device) const;
    /// Binds all of the memory, of this device of the team, at the start of the object. Waits until
    /// the team is complete; an emulated driver gives up after SYMM_TIMEOUT. Throws CudaError.
    [[nodiscard]] MulticastBinding bind(int device, const PhysicalMemory& memory) const;
    /// To map it, and to export it.
    const PhysicalMemory& handle() const { return handle_; }

private:
    PhysicalMemory handle_;
};

/// Throws std::runtime_error if the device has no multicast objects, or if they are not allowed.
void require_multicast(int device);

}  // namespace symm
