#pragma once
/// \file
/// A piece of host memory that GPUs of several processes read and write.
///
/// "Two paths" in README.md shows the calls of both. On both paths a file descriptor is sent, and
/// the memory is freed when the last process has given back its mapping and file descriptors.
///
/// Source: NCCL's ncclShmAllocateShareableBuffer and ncclShmImportShareableBuffer in
/// src/transport/shm.cc, and ncclCuMemHostAlloc in src/include/alloc.h.

#include <cuda.h>

#include <cstddef>
#include <span>

#include "common/sys/descriptor.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"
#include "labs/04_shm_transport/host_memory/host_path.hpp"
#include "labs/04_shm_transport/host_memory/registered_memfd.hpp"

namespace symm {

/// Owns this process's view of a segment. Move-only. Destruction does not wait for kernels:
/// synchronise first. POSIX: construction makes the primary context of `devices[0]` current.
class HostSegment {
public:
    HostSegment() = default;

    /// New memory, all zero, at least `bytes` (not 0), rounded up. cuMem: on the NUMA node of
    /// `devices[0]` (host_node_of() in lab 02's access.hpp); POSIX: on the node of the calling
    /// thread. `devices` (at least one) and the host may read and write it. Throws CudaError or
    /// std::system_error.
    static HostSegment create(HostPath path, std::size_t bytes, std::span<const int> devices);

    /// The memory of a file descriptor that share() returned, in this or another process.
    /// `bytes` is the size() of that segment. Throws CudaError or std::runtime_error for a
    /// descriptor of anything else.
    static HostSegment attach(HostPath path, UniqueFd fd, std::size_t bytes,
                              std::span<const int> devices);

    /// A file descriptor for another process. Throws CudaError or std::system_error.
    [[nodiscard]] UniqueFd share() const;

    /// Bytes, rounded up to granules of 2 MiB (cuMem) or to pages (POSIX).
    std::size_t size() const { return is_posix() ? file_.size() : mapping_.size(); }
    /// The address for the host; null when empty.
    void* host() const {
        // cuMem: the host and all GPUs use the same address.
        return is_posix() ? file_.data() : reinterpret_cast<void*>(mapping_.address());
    }
    /// The address for kernels and copies.
    CUdeviceptr address() const {
        return is_posix() ? registration_.address() : mapping_.address();
    }
    explicit operator bool() const { return host() != nullptr; }

private:
    explicit HostSegment(HostPath path) : path_(path) {}
    bool is_posix() const { return path_ == HostPath::kPosix; }
    void map(std::span<const int> devices);

    HostPath path_ = HostPath::kCuMem;
    // cuMem. Destroyed from the last to the first: unmap, free the addresses, release the memory.
    PhysicalMemory memory_;
    AddressRange range_;
    Mapping mapping_;
    // POSIX. The registration is destroyed before the memory.
    SharedMemoryFile file_;
    HostRegistration registration_;
};

}  // namespace symm
