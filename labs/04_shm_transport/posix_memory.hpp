#pragma once
/// \file
/// The POSIX path to shared host memory: a file without a name, and its registration.
///
///     memfd_create, fallocate, mmap        makes memory that processes can share
///     cuMemHostRegister                    lets the GPUs of this process use it
///
/// A memfd is a file in memory, used here instead of a file in /dev/shm: it has no name that could
/// be taken already, be guessed, or stay behind a killed process, and it does not count against the
/// 64 MB that containers give /dev/shm. The memory is freed with its last file descriptor or
/// mapping, like memory of cuMemCreate.
///
/// Source: memfd_create(2), fcntl(2) "File Sealing"; CUDA Driver API, cuMemHostRegister; NCCL's
/// ncclShmOpen in src/misc/shmutils.cc.

#include <cuda.h>

#include <cstddef>
#include <optional>

#include "common/cuda/device.hpp"
#include "common/sys/descriptor.hpp"
#include "common/sys/owner.hpp"

namespace symm {

/// Owns a mapping of shared memory and a file descriptor of it. Move-only.
class SharedMemoryFile {
public:
    /// Owns nothing.
    SharedMemoryFile() = default;
    /// New memory, all zero: at least `bytes` (not 0), rounded up to whole pages. All pages are
    /// allocated here, so a lack of memory is an error here and not a SIGBUS later. The size can
    /// never change. Throws std::system_error.
    static SharedMemoryFile create(std::size_t bytes);
    /// Maps the memory behind a file descriptor. Throws std::runtime_error where create() did not
    /// make it, or where its size is not `bytes`.
    static SharedMemoryFile attach(UniqueFd fd, std::size_t bytes);

    void* data() const { return mapped_.data(); }
    std::size_t size() const { return mapped_.size(); }
    const UniqueFd& fd() const { return fd_; }

private:
    SharedMemoryFile(UniqueFd fd, std::size_t bytes);

    class Mapped : public Owner<Mapped, Sized<void*>> {
    public:
        Mapped() = default;
        Mapped(const UniqueFd& fd, std::size_t bytes);
        void* data() const { return value_.handle; }
        std::size_t size() const { return value_.bytes; }
        static void give_back(const Sized<void*>& mapped);
    };

    UniqueFd fd_;
    Mapped mapped_;
};

/// Keeps host memory registered: page-locked, and mapped into every GPU of this process. Move-only.
/// Destroy it before the memory, with any context current.
class HostRegistration {
public:
    /// Owns nothing.
    HostRegistration() = default;
    /// Registers `bytes` at `data`, both whole pages, in the primary context of `device`, which
    /// becomes current. Throws CudaError.
    HostRegistration(int device, void* data, std::size_t bytes);

    /// The address for GPUs.
    CUdeviceptr address() const { return registered_.address(); }

private:
    class Registered : public Owner<Registered, void*> {
    public:
        Registered() = default;
        Registered(void* data, std::size_t bytes);
        CUdeviceptr address() const { return address_; }
        static void give_back(void* data);

    private:
        CUdeviceptr address_ = 0;
    };

    // A registration ends with its context. Ranks that are threads share it, and the one that made
    // it may end first, so it holds the context itself.
    std::optional<Device> device_;
    Registered registered_;
};

}  // namespace symm
