#pragma once
/// \file
/// The POSIX way to shared host memory: a file without a name, and its registration.
///
///     memfd_create -> fallocate -> mmap          now processes share it
///                                   cuMemHostRegister       now GPUs reach it
///
/// A memfd instead of a file in /dev/shm: it has no name that could clash, be guessed or be left
/// behind by a killed process, and does not count against the 64 MB that containers give /dev/shm.
/// It goes with its last descriptor or mapping, like memory that cuMemCreate made.
///
/// Source: memfd_create(2), fcntl(2) "File Sealing"; CUDA Driver API, cuMemHostRegister; NCCL's
/// ncclShmOpen in src/misc/shmutils.cc.

#include <cuda.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "common/cuda/device.hpp"
#include "common/sys/descriptor.hpp"

namespace symm {

/// Owns a mapping of shared memory and a descriptor of it. Move-only.
class SharedMemoryFile {
public:
    /// Owns nothing.
    SharedMemoryFile() = default;
    /// New memory, all zero, at least `bytes` (not 0), rounded up to whole pages, all of them
    /// there: a machine without them says so here and not with a SIGBUS later. Its size can never
    /// change. Throws std::system_error.
    static SharedMemoryFile create(std::size_t bytes);
    /// Maps what another made. Throws std::runtime_error where the descriptor names no memory made
    /// by create(), or of another size than `bytes`.
    static SharedMemoryFile attach(UniqueFd descriptor, std::size_t bytes);

    SharedMemoryFile(SharedMemoryFile&& other) noexcept
        : descriptor_(std::move(other.descriptor_)),
          data_(std::exchange(other.data_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    SharedMemoryFile& operator=(SharedMemoryFile&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    SharedMemoryFile(const SharedMemoryFile&) = delete;
    SharedMemoryFile& operator=(const SharedMemoryFile&) = delete;
    ~SharedMemoryFile();

    void* data() const { return data_; }
    std::size_t size() const { return bytes_; }
    const UniqueFd& descriptor() const { return descriptor_; }

private:
    SharedMemoryFile(UniqueFd descriptor, std::size_t bytes);

    UniqueFd descriptor_;
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Keeps host memory registered: page-locked, and mapped into every GPU of this process. Move-only.
/// The memory outlives it. A context is current at its end.
class HostRegistration {
public:
    /// Owns nothing.
    HostRegistration() = default;
    /// Registers `bytes` at `data`, both whole pages, in the primary context of `device`, which
    /// becomes current. Throws CudaError.
    HostRegistration(int device, void* data, std::size_t bytes);

    HostRegistration(HostRegistration&& other) noexcept
        : device_(std::exchange(other.device_, std::nullopt)),
          data_(std::exchange(other.data_, nullptr)),
          address_(std::exchange(other.address_, 0)) {}
    HostRegistration& operator=(HostRegistration&& other) noexcept {
        std::swap(device_, other.device_);
        std::swap(data_, other.data_);
        std::swap(address_, other.address_);
        return *this;
    }
    HostRegistration(const HostRegistration&) = delete;
    HostRegistration& operator=(const HostRegistration&) = delete;
    ~HostRegistration();

    /// Where the GPUs find the memory.
    CUdeviceptr address() const { return address_; }

private:
    // A registration goes with its context. Ranks that are threads share it, and the one that made
    // it may be the first to leave: so it holds the context itself.
    std::optional<Device> device_;
    void* data_ = nullptr;
    CUdeviceptr address_ = 0;
};

}  // namespace symm
