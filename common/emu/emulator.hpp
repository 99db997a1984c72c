#pragma once
/// \file
/// The state of the emulated driver in this process: what exists, and the lock that guards it.
///
/// Where to look:
///
/// | file | holds |
/// |---|---|
/// | configuration, faults | the settings in SYMM_EMU_*; calls that fail on request |
/// | device, contexts | cuInit, cuDevice*, cuCtx* |
/// | memory | the kinds of memory, and what each is made of |
/// | physical_memory, address_space, access | cuMemCreate, cuMemMap, cuMemSetAccess and the like |
/// | lossy | pairs of devices whose loads, stores or copies are lost |
/// | sharing | handles for other processes |
/// | plain_memory | cuMemAlloc, pinned and registered host memory |
/// | streams, copies, events, graphs | work that is queued |
/// | launch, kernels, fibers, block_barrier, thread_pool, fault_guard | the threads of a kernel |
/// | libraries, ptx, host_twin | kernels that are found by name, and the host code that runs for them |
/// | shortage | errors where the host has no more memory, threads or descriptors |
/// | inventory | counts of all that exists, for leak tests |
///
/// Locks. `mutex` guards what exists: a call that makes or destroys something takes it exclusively,
/// a call that only looks something up shares it. Two calls that share it are not ordered one after
/// the other. So ThreadSanitizer still reports a race between kernels of two ranks, even where one
/// was launched after the other. A stream's queue, an event and a capture have locks of their own.
/// They are taken after `mutex`, never before it.
///
/// The state is never destroyed, because owners with static storage call the driver at exit.

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "common/emu/configuration.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/host_twin.hpp"
#include "common/emu/memory.hpp"

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
    std::size_t used = 0;              ///< Bytes allocated on it by this process.
    std::atomic<int> threads{0};       ///< Kernel threads resident on it.
    std::atomic<int> kernels{0};       ///< Kernels running on it.
};

struct Emulator {
    std::shared_mutex mutex;
    std::atomic<bool> initialised{false};
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

    std::map<std::string, HostTwin> twins;  ///< By the kernel's name.
    NamedKernels linked;                    ///< Of the program itself: all that have a twin.
    std::unordered_map<CUlibrary, std::shared_ptr<const NamedKernels>> libraries;
    std::unordered_map<CUfunction, std::shared_ptr<const std::string>> functions;  ///< Their names.

    std::atomic<int> copies{0};  ///< Copies and fills that are running.

    /// A value that no handle had before: the handle of something destroyed stays invalid.
    std::uint64_t new_handle() { return next_handle_.fetch_add(0x10, std::memory_order_relaxed); }
    template <class Handle>
    Handle new_handle_as() {
        return reinterpret_cast<Handle>(new_handle());
    }

private:
    std::atomic<std::uint64_t> next_handle_{0x5e00'0000'0010};
};

Emulator& emulator();

using ReadLock = std::shared_lock<std::shared_mutex>;
using WriteLock = std::unique_lock<std::shared_mutex>;

/// The entry for the handle in one of the emulator's maps, or null.
template <class Map>
auto find_in(const Map& map, typename Map::key_type handle) {
    const ReadLock lock(emulator().mutex);
    const auto found = map.find(handle);
    return found != map.end() ? found->second : nullptr;
}

/// Whether there is a device of this number.
bool is_device(int ordinal);

/// Checks the arguments of a call that writes an answer about a device to `answer`:
/// CUDA_ERROR_INVALID_VALUE for a null pointer, CUDA_ERROR_INVALID_DEVICE for no such device.
CUresult check_arguments(const void* answer, int device);

}  // namespace symm::emu
