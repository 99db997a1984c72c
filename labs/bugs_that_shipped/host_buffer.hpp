#pragma once
/// \file
/// A buffer in host memory that two ranks share: one makes it, and its peer attaches it.
///
/// | step    | who   | does                                                                  |
/// |---------|-------|-----------------------------------------------------------------------|
/// | probe   | each  | tries whether it can use cuMem                                        |
/// | choose  | each  | knows both probes; both ranks choose the same path                    |
/// | make    | owner | makes the buffer, and a descriptor that says of which path it is      |
/// | attach  | peer  | opens what the descriptor describes                                   |
///
/// Model of NCCL's shared memory (README.md, "B.7"). A memfd stands for memory of cuMemCreate(),
/// and its descriptor's number for the handle. Lab 04's host_path.hpp is the real thing.

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace symm::bugs_that_shipped {

enum class Path { kCuMem, kFile };

/// What the owner sends its peer. `bytes` is a file descriptor's number, or a name in /dev/shm.
struct BufferDescriptor {
    Path path;
    std::array<char, 16> bytes;
};

/// Opens cuMem's handle. Throws where this rank cannot use cuMem.
inline int open_handle(const BufferDescriptor& descriptor, bool has_cumem) {
    int handle = -1;
    std::memcpy(&handle, descriptor.bytes.data(), sizeof(handle));
    const int file = has_cumem ? ::dup(handle) : -1;
    if (file < 0) {
        throw std::runtime_error(fmt::format("cannot import the cuMem handle {}: {}", handle,
                                             has_cumem ? std::strerror(errno) : "not supported"));
    }
    return file;
}

/// Opens a file in /dev/shm.
inline int open_file(const BufferDescriptor& descriptor) {
    const std::string name(descriptor.bytes.data(),
                           ::strnlen(descriptor.bytes.data(), descriptor.bytes.size()));
    const int file = ::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) {
        throw std::runtime_error(
            fmt::format("cannot attach /dev/shm{}: {}", name, std::strerror(errno)));
    }
    return file;
}

/// The path of a buffer, the same on both ranks: `own` and `peers` say who can use cuMem, the
/// faster path.
inline Path choose_path(bool own, bool peers) {
    return own && peers ? Path::kCuMem : Path::kFile;
}

/// Opens the peer's buffer. Returns a file descriptor, which the caller closes.
inline int attach(const BufferDescriptor& descriptor, bool has_cumem) {
    return descriptor.path == Path::kCuMem ? open_handle(descriptor, has_cumem)
                                           : open_file(descriptor);
}

}  // namespace symm::bugs_that_shipped
