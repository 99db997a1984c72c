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

#include "common/cuda/device.hpp"
#include "common/sys/descriptor.hpp"
#include "common/sys/owner.hpp"

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

    void* data() const { return mapped_.data(); }
    std::size_t size() const { return mapped_.size(); }
    const UniqueFd& descriptor() const { return descriptor_; }

private:
    SharedMemoryFile(UniqueFd descriptor, std::size_t bytes);

    class Mapped : public Owner<Mapped, Sized<void*>> {
    public:
        Mapped() = default;
        Mapped(const UniqueFd& descriptor, std::size_t bytes);
        void* data() const { return value_.handle; }
        std::size_t size() const { return value_.bytes; }
        static void give_back(const Sized<void*>& mapped);
    };

    UniqueFd descriptor_;
    Mapped mapped_;
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

    /// Where the GPUs find the memory.
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

    // A registration goes with its context. Ranks that are threads share it, and the one that made
    // it may be the first to leave: so it holds the context itself.
    std::optional<Device> device_;
    Registered registered_;
};

}  // namespace symm
