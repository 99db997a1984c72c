#pragma once
/// \file
/// The emulator's notions of memory: physical memory, address ranges, mappings, plain allocations.
///
/// Physical memory is a memfd: sparse, so that gigabytes cost nothing until touched, and a file
/// descriptor, so that it travels between processes as the real thing does. After the data comes
/// one page that says what it is:
///
///     0                          size                 size + 4096
///     | the allocation's bytes   | Trailer, zeros     |
///
/// A mapping is that file mapped at a fixed address inside a reserved range. Its page protection is
/// what devices and host may do (access.hpp).

#include <cuda.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/emu/configuration.hpp"
#include "common/sys/descriptor.hpp"

namespace symm::emu {

/// Sizes, offsets and addresses of mappings are multiples of this, as on an H200.
inline constexpr std::size_t kGranularity = std::size_t{2} << 20;
inline constexpr std::size_t kPage = 4096;

inline bool is_multiple(std::uint64_t value, std::size_t of) {
    return value % of == 0;
}

/// The host's place in a table that has one entry a device.
inline constexpr int kHost = kMaxDevices;

/// The file behind an allocation, recognised whichever descriptor names it.
struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const FileIdentity&) const = default;
};

/// What cuMemCreate made or an import found.
struct Physical {
    CUmemGenericAllocationHandle handle = 0;
    UniqueFd fd;
    FileIdentity identity;
    std::size_t size = 0;
    CUmemAllocationProp properties{};
    int references = 0;     ///< Of the handle: one from its making, one for each retain and import.
    int mappings = 0;       ///< That show it.
    bool imported = false;  ///< Its bytes count where it was made, not here.

    bool on_device() const { return properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE; }
    int owner() const { return on_device() ? properties.location.id : kHost; }
};

/// What cuMemAddressReserve gave: addresses with nothing behind them. Its key is its base.
struct Reservation {
    std::size_t size = 0;
};

/// Physical memory seen at an address. Its key is its base.
struct Mapping {
    std::size_t size = 0;
    Physical* physical = nullptr;
    /// What each device and the host may do: 0, 1 (read) or 3 (read and write).
    std::array<unsigned char, kMaxDevices + 1> rights{};
    std::atomic<int> protection{0};  ///< As mprotect was told last.
    bool restricted = false;         ///< Counted in Emulator::restricted.
    bool lossy_view = false;         ///< Other pages stand there for now (lossy.hpp).
};

/// What cuMemAlloc or cuMemHostAlloc gave, or cuIpcOpenMemHandle opened. Its key is its base.
struct PlainMemory {
    enum class Kind { kDevice, kPinnedHost, kOpened };
    Kind kind = Kind::kDevice;
    bool registered = false;  ///< By cuMemHostRegister: the caller maps and frees it.
    std::size_t size = 0;     ///< As asked for.
    std::size_t mapped = 0;   ///< Whole pages.
    int device = 0;
    CUcontext context = nullptr;
    UniqueFd fd;
    FileIdentity identity;
    int openings = 0;  ///< How often an opened one was opened.
};

/// An anonymous file of `size` bytes, all zero. Empty where the system has no more: see errno.
UniqueFd new_memory_file(const char* name, std::size_t size);
FileIdentity identity_of(int fd);

}  // namespace symm::emu
