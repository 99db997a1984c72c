#pragma once
/// \file
/// The POSIX path to shared host memory: a file without a name, and its registration.
///
///     memfd_create, fallocate, mmap        makes memory that processes can share
///     cuMemHostRegister                    lets the GPUs of this process use it
///
/// The memory is freed with its last file descriptor or mapping, like memory of cuMemCreate.
/// README.md compares a memfd with a file in /dev/shm.
/// Source: memfd_create(2), fcntl(2) "File Sealing"; CUDA Driver API, cuMemHostRegister; NCCL's
/// ncclShmOpen in src/misc/shmutils.cc.

#include <cuda.h>

#include <cstddef>
#include <memory>

#include "common/cuda/device.hpp"
#include "common/sys/descriptor.hpp"
#include "common/sys/owner.hpp"

namespace symm {

/// Owns a mapping of shared memory and a file descriptor of it. Move-only.
class SharedMemoryFile : public Owner<SharedMemoryFile, Sized<void*>> {
public:
    SharedMemoryFile() = default;
    /// New memory, all zero: at least `bytes` (not 0), rounded up to whole pages. All pages are
    /// allocated here, so a lack of memory is an error here, not a SIGBUS later. The size can never
    /// change. Throws std::system_error.
    static SharedMemoryFile create(std::size_t bytes);
    /// Maps the memory of a file descriptor. Throws std::runtime_error if create() did not
    /// make it, or if its size is not `bytes`.
    static SharedMemoryFile attach(UniqueFd fd, std::size_t bytes);

    void* data() const { return value_.handle; }
    std::size_t size() const { return value_.bytes; }
    const UniqueFd& fd() const { return fd_; }

    static void give_back(const Sized<void*>& mapped);

private:
    SharedMemoryFile(UniqueFd fd, std::size_t bytes);

    UniqueFd fd_;
};

/// Memory that is registered, and the device that registered it. A registration ends with the
/// context in which it was made. The rank that made a segment may end before other ranks that share
/// the segment, so `device` keeps the context.
struct Registered {
    void* data = nullptr;
    CUdeviceptr address = 0;
    std::shared_ptr<const Device> device;
    friend bool operator==(const Registered&, const Registered&) = default;
};

/// Keeps host memory registered: page-locked, and mapped into every GPU of this process. Move-only.
/// Destroy it before the memory, in any thread.
class HostRegistration : public Owner<HostRegistration, Registered> {
public:
    HostRegistration() = default;
    /// Registers `bytes` at `data`, both multiples of the page size, in the primary context of
    /// `device`, which becomes current. Throws CudaError.
    HostRegistration(int device, void* data, std::size_t bytes);

    /// The address for GPUs.
    CUdeviceptr address() const { return value_.address; }

    static void give_back(const Registered& registered);
};

}  // namespace symm
