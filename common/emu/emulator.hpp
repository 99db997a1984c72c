#pragma once
/// \file
/// The one emulated driver of this process: what exists, and the lock that guards it.
///
/// Where to look:
///
/// | file | holds |
/// |---|---|
/// | configuration, faults | what SYMM_EMU_* says; failing the k-th call |
/// | device, contexts | cuInit, cuDevice*, cuCtx* |
/// | physical_memory, address_space, access | cuMemCreate, cuMemMap, cuMemSetAccess and their kin |
/// | lossy | pairs of devices that lose what they claim to carry |
/// | sharing, ipc | handles that travel to other processes |
/// | plain_memory, host_register | cuMemAlloc, pinned host memory |
/// | streams, copies, events, graphs | work in order, later |
/// | kernels, block_barrier, thread_pool, fault_guard | a kernel's threads |
/// | shortage | what the host has run out of |
/// | inventory | counts of all that exists, for leak tests |
///
/// Locks. `mutex` guards what exists: calls that make or destroy things take it alone, calls that
/// look things up share it. Sharing matters: shared holders are not ordered before each other, so
/// ThreadSanitizer still sees a race between the kernels of two ranks that merely launched in turn.
/// A stream's queue, an event and a capture have locks of their own, taken after `mutex`, never
/// before it.
///
/// The state is never destroyed: owners with static storage call the driver at exit.

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/emu/configuration.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/memory.hpp"

namespace symm::emu {

struct Context;
class Stream;
struct Event;
struct Graph;

/// What is kept of each emulated GPU.
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
    Configuration configuration;  ///< Written once, by the first cuInit that understood it.

    std::array<Device, kMaxDevices> devices;
    std::unordered_set<Context*> contexts;  ///< Those alive.

    std::map<CUmemGenericAllocationHandle, std::unique_ptr<Physical>> physicals;
    std::map<CUdeviceptr, Reservation> reservations;
    std::map<CUdeviceptr, Mapping> mappings;
    std::size_t restricted = 0;  ///< Mappings that some devices may touch and others not.
    std::map<CUdeviceptr, PlainMemory> plain;

    std::unordered_map<CUstream, std::shared_ptr<Stream>> streams;
    std::unordered_map<CUevent, std::shared_ptr<Event>> events;
    std::unordered_map<CUgraph, std::shared_ptr<const Graph>> graphs;
    std::unordered_map<CUgraphExec, std::shared_ptr<const Graph>> executables;

    std::atomic<int> copies{0};  ///< Copies and fills that are running.

    /// A value for a handle that was never one before, so that a stale handle is always recognised.
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

/// Whether there is a device of this number.
bool is_device(int ordinal);

}  // namespace symm::emu
