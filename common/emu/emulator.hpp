#pragma once
/// \file
/// The state of the emulated driver in this process: what exists, and the lock that guards it.
/// README.md is the map of the folder.
///
/// An emulated function has the real one's name and parameters. It throws Refused if the real one
/// answers with an error; the table's functions (driver/table.hpp) turn that into the answer.
///
/// Locks. `mutex` guards what exists: a call that makes or destroys something takes it exclusively
/// (Changing), a call that only looks something up shares it (Reading). Two calls that share it are
/// not ordered one after the other. So ThreadSanitizer still reports a race between kernels of two
/// ranks, even where one was launched after the other. A stream's queue, an event and a capture
/// have locks of their own. They are taken after `mutex`, never before it.
///
/// The state is never destroyed, because owners with static storage call the driver at exit.

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "common/emu/configuration.hpp"
#include "common/emu/errors.hpp"
#include "common/emu/kinds_of_memory.hpp"
#include "common/sys/creator_process.hpp"

namespace symm::emu {

struct Context;
class Stream;
struct Event;
struct Graph;

/// Kernels by name.
using NamedKernels = std::map<std::string, CUfunction>;

/// The state of one emulated GPU.
struct Device {
    std::unique_ptr<Context> primary;  ///< Made by cuInit; alive while it is retained.
    std::atomic<int> threads{0};       ///< Kernel threads resident on it.
    std::atomic<int> kernels{0};       ///< Kernels running on it.
};

struct Emulator {
    std::shared_mutex mutex;
    std::atomic<bool> initialised{false};
    std::optional<CreatorProcess> initialised_by;  ///< Written once, before `initialised`.
    bool configured = false;
    Configuration configuration;  ///< Written once, by the first cuInit that could read it.

    std::array<Device, kMaxDevices> devices;
    std::unordered_set<Context*> contexts;  ///< Those that exist: not destroyed yet.

    std::map<CUmemGenericAllocationHandle, std::unique_ptr<Physical>> physicals;
    std::map<CUdeviceptr, Reservation> reservations;
    std::map<CUdeviceptr, Mapping> mappings;
    std::map<CUdeviceptr, PlainMemory> plain;

    std::unordered_map<CUstream, std::shared_ptr<Stream>> streams;
    std::unordered_map<CUevent, std::shared_ptr<Event>> events;
    std::unordered_map<CUgraph, std::shared_ptr<const Graph>> graphs;
    std::unordered_map<CUgraphExec, std::shared_ptr<const Graph>> executables;
    std::unordered_map<CUlibrary, NamedKernels> libraries;
    std::unordered_map<CUfunction, std::string> functions;  ///< Their names.

    std::atomic<int> copies{0};  ///< Copies and fills that are running.

    /// A value that no handle had before: the handle of something destroyed stays invalid.
    std::uint64_t new_handle() { return next_handle_.fetch_add(0x10, std::memory_order_relaxed); }

    /// Adds `thing` to one of the maps above. Returns its new handle.
    template <class Map>
    auto keep(Map& map, typename Map::mapped_type thing) {
        const auto handle = reinterpret_cast<typename Map::key_type>(new_handle());
        map.emplace(handle, std::move(thing));
        return handle;
    }

private:
    std::atomic<std::uint64_t> next_handle_{0x5e00'0000'0010};
};

Emulator& emulator();

/// The state, locked for the lifetime of this object.
template <class Lock>
class Locked {
public:
    Emulator& operator*() const { return emulator(); }
    Emulator* operator->() const { return &emulator(); }

private:
    Lock lock_{emulator().mutex};
};
using Reading = Locked<std::shared_lock<std::shared_mutex>>;
using Changing = Locked<std::unique_lock<std::shared_mutex>>;

/// A copy of the map's entry for the handle. Throws `unknown` if there is none.
template <class Map>
auto find_in(const Map& map, typename Map::key_type handle,
             CUresult unknown = CUDA_ERROR_INVALID_HANDLE) {
    const Reading e;
    const auto found = map.find(handle);
    refuse_if(found == map.end(), unknown);
    return found->second;
}

/// Removes the map's entry for the handle. Throws `unknown` if there is none.
template <class Map>
void erase_from(Map& map, typename Map::key_type handle,
                CUresult unknown = CUDA_ERROR_INVALID_HANDLE) {
    const Changing e;
    refuse_if(map.erase(handle) == 0, unknown);
}

/// Refuses any other number than a device's.
inline void check_device(int ordinal) {
    refuse_if(ordinal < 0 || ordinal >= emulator().configuration.devices,
              CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace symm::emu
