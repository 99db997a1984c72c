#pragma once
/// \file
/// A piece of host memory that GPUs of several processes read and write: the ground a transport
/// without peer access stands on.
///
/// | step | cuMem | POSIX |
/// |---|---|---|
/// | memory | cuMemCreate on the NUMA node next to the GPU | memfd_create, fallocate |
/// | address | cuMemAddressReserve, cuMemMap | mmap |
/// | access of GPUs | cuMemSetAccess, device by device | cuMemHostRegister, all at once |
/// | access of the host | cuMemSetAccess, HOST_NUMA | comes with mmap |
/// | to another process | cuMemExportToShareableHandle | the memfd itself |
/// | in the other process | cuMemImportFromShareableHandle, then as above | mmap, then as above |
///
/// Either way a file descriptor travels, and either way the memory stays until the last process has
/// let it go.
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
#include "labs/04_shm_transport/host_path.hpp"
#include "labs/04_shm_transport/posix_memory.hpp"

namespace symm {

/// Owns this process's view of a segment. Move-only. Destruction does not wait for kernels:
/// synchronise first. POSIX: construction makes the primary context of `devices[0]` current, and at
/// destruction some context is.
class HostSegment {
public:
    /// Owns nothing.
    HostSegment() = default;

    /// New memory, all zero, at least `bytes` (not 0), rounded up; near `devices[0]`. `devices` (at
    /// least one) and the host may read and write it. Throws CudaError or std::system_error.
    static HostSegment create(HostPath path, std::size_t bytes, std::span<const int> devices);

    /// The memory behind a descriptor that share() gave, here or in another process. `bytes` is
    /// size() there. Throws CudaError or std::runtime_error for a descriptor of anything else.
    static HostSegment attach(HostPath path, UniqueFd descriptor, std::size_t bytes,
                              std::span<const int> devices);

    /// A descriptor for another process. Throws CudaError or std::system_error.
    UniqueFd share() const;

    HostPath path() const { return path_; }
    /// Bytes, rounded up to what the path deals in: 2 MiB granules or pages.
    std::size_t size() const { return is_posix() ? file_.size() : mapping_.size(); }
    /// Where the host finds it; null when empty.
    void* host() const {
        // cuMem: one address for the host and all its GPUs.
        return is_posix() ? file_.data() : reinterpret_cast<void*>(mapping_.address());
    }
    /// Where kernels and copies find it.
    CUdeviceptr address() const {
        return is_posix() ? registration_.address() : mapping_.address();
    }
    explicit operator bool() const { return host() != nullptr; }

private:
    explicit HostSegment(HostPath path) : path_(path) {}
    bool is_posix() const { return path_ == HostPath::kPosix; }
    void map(std::span<const int> devices);
    void register_file(int device);

    HostPath path_ = HostPath::kCuMem;
    // cuMem; destruction runs backwards: unmap, free the addresses, release the memory.
    PhysicalMemory memory_;
    AddressRange range_;
    Mapping mapping_;
    // POSIX; the registration goes before the memory.
    SharedMemoryFile file_;
    HostRegistration registration_;
};

}  // namespace symm
