#pragma once
/// \file
/// A file descriptor as bytes that another process can open.

#include <cstddef>
#include <cstdint>

#include "common/emu/memory.hpp"

namespace symm::emu {

/// Names an open file of a process of this user: what fabric handles and cuIpcMemHandles hold. It
/// opens /proc/PID/fd/N, so nothing is left behind when a process ends, however it ends.
struct Ticket {
    char magic[8];
    std::int32_t process;
    std::int32_t fd;
    std::uint64_t file_device;
    std::uint64_t file_inode;
    std::uint64_t size;
    std::int32_t device;
    std::int32_t unused;
};

Ticket make_ticket(int fd, std::size_t size, int device);
bool is_ticket(const Ticket& ticket);

/// Opens the file, or nothing where the process or the file is gone.
UniqueFd open_ticket(const Ticket& ticket);

}  // namespace symm::emu
