#pragma once
/// \file
/// The kinds of memory: physical memory, reserved addresses, mappings, plain allocations.
///
/// Physical memory is a memfd, for two reasons. It is sparse, so gigabytes cost nothing until they
/// are written. And it is a file descriptor, so another process can get it. The bytes after the
/// data (Trailer) say what properties the memory was made with:
///
///     0                          size                 size + 4096
///     | the allocation's bytes   | Trailer, zeros     |
///
/// A mapping is that file, mapped at a fixed address inside a reserved range. The protection of its
/// pages says what devices and host may do (memory/access.hpp).

#include <cuda.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "common/emu/configuration.hpp"
#include "common/sys/descriptor.hpp"

namespace symm::emu {

struct Context;
class Team;

/// Sizes, offsets and addresses of mappings are multiples of this, as on an H200.
inline constexpr std::size_t kGranularity = std::size_t{2} << 20;
inline constexpr std::size_t kTrailerBytes = 4096;

inline void* at(CUdeviceptr pointer) {
    return reinterpret_cast<void*>(pointer);
}

/// The host's index in a table that has one entry for each device and one for the host.
inline constexpr int kHost = kMaxDevices;

/// Equal for two descriptors of the same file, different for descriptors of two files.
struct FileIdentity {
    dev_t device;
    ino_t inode;
    bool operator==(const FileIdentity&) const = default;
};

/// Memory that cuMemCreate made or an import found, or a multicast object.
struct Physical {
    CUmemGenericAllocationHandle handle = 0;
    UniqueFd fd;
    FileIdentity file{};
    std::size_t size = 0;
    CUmemAllocationProp properties{};  ///< Of a multicast object, only the types of handles.
    std::shared_ptr<Team> team;        ///< Not null: a multicast object (memory/multicast.hpp).
    int references = 0;                ///< How many calls of cuMemRelease are still due.
    int mappings = 0;                  ///< How many mappings it has.
    int bindings = 0;                  ///< To multicast objects, by this process.
    bool imported = false;             ///< Its bytes count in the process that made it, not here.

    bool on_device() const { return properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE; }
    int owner() const { return on_device() ? properties.location.id : kHost; }
};

/// Addresses without memory, from cuMemAddressReserve. Found by its base address.
struct Reservation {
    std::size_t size = 0;
};

/// Physical memory at an address. Found by its base address.
struct Mapping {
    std::size_t size = 0;
    Physical* physical = nullptr;
    /// The rights of each device and the host: 0, 1 (read) or 3 (read and write).
    std::array<unsigned char, kMaxDevices + 1> rights{};
    std::atomic<int> protection{0};  ///< The value that mprotect set last.
    bool lossy_view = false;         ///< Private copies are mapped there now (memory/lossy.hpp).

    unsigned char all_rights() const {
        unsigned char all = 0;
        for (const unsigned char one : rights) {
            all |= one;
        }
        return all;
    }
};

struct Unmapping {
    std::size_t size = 0;
    void operator()(void* pages) const { ::munmap(pages, size); }
};

/// Memory from cuMemAlloc or cuMemHostAlloc, memory registered with cuMemHostRegister, or memory
/// opened by cuIpcOpenMemHandle. Found by its base address.
struct PlainMemory {
    enum class Kind { kDevice, kPinned, kRegistered, kOpened };
    Kind kind = Kind::kDevice;
    std::size_t size = 0;  ///< As asked for; whole pages of it are mapped.
    int device = 0;
    Context* context = nullptr;
    UniqueFd fd;       ///< Empty for registered memory.
    int openings = 0;  ///< For kOpened: how many calls of cuIpcCloseMemHandle are still due.
    /// The mapping of its file; null for registered memory, which the caller maps and frees.
    std::unique_ptr<void, Unmapping> pages;

    bool on_host() const { return kind == Kind::kPinned || kind == Kind::kRegistered; }
};

}  // namespace symm::emu
