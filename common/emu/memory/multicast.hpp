#pragma once
/// \file
/// Multicast objects: one address for memory of several devices, a *team*.
///
/// An object is a physical allocation (kinds_of_memory.hpp) without bytes of its own. Its file
/// holds the team and what is bound, and every process that has a handle maps it:
///
///     0            sizeof(TeamState)       + 4096
///     | the team   | Trailer, zeros        |
///
/// Nothing is ever accessible where an object is mapped: a plain access faults, which on a GPU is
/// undefined. Only the multimem functions (simt/multimem.hpp) reach the memory of all devices,
/// each at an address where this process has it.

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>

#include "common/emu/emulator.hpp"
#include "common/emu/memory/physical_memory.hpp"
#include "common/simt/multimem.hpp"

namespace symm::emu {

/// Memory of a device that is bound to a part of an object.
struct Binding {
    enum State : int { kFree, kChanging, kBound };
    std::atomic<int> state;
    int device;
    std::size_t offset, size;   ///< In the object.
    FileIdentity memory;        ///< What is bound,
    std::size_t memory_offset;  ///< and from where on.
    pid_t process;              ///< That has bound it, and has the memory open
    int fd;                     ///< as this.
};

/// What all processes see. Zeroed memory is a valid one.
struct TeamState {
    static constexpr std::size_t kMostBindings = 64;
    CUmulticastObjectProp properties;
    std::atomic<std::uint32_t> devices;  ///< That were added, a bit for each.
    std::array<Binding, kMostBindings> bindings;

    int added() const { return __builtin_popcount(devices.load(std::memory_order_acquire)); }
    bool is_complete() const { return added() == static_cast<int>(properties.numDevices); }
};

/// An object, as this process sees it.
class Team {
public:
    /// Maps the file. Refuses if the system cannot.
    explicit Team(int fd);
    ~Team();
    Team(const Team&) = delete;

    TeamState* operator->() const { return state_; }
    bool has(int device) const { return (state_->devices.load() >> device & 1U) != 0; }

    /// Binds memory of this process, which stays until it is unbound or this dies.
    void bind(Physical& memory, std::size_t memory_offset, std::size_t offset, std::size_t size);
    /// Refuses if this process has not bound exactly that.
    void unbind(Emulator& e, int device, std::size_t offset, std::size_t size);
    void unbind_all(Emulator& e);
    /// Where this process can access what is bound at `offset`, a device after the other.
    simt::MulticastCopies copies_at(const Emulator& e, std::size_t offset);

private:
    struct Opened {
        void* pages;
        std::size_t size;
    };
    char* memory_of(const Emulator& e, const Binding& binding);
    void free(Emulator& e, std::size_t binding);

    TeamState* state_ = nullptr;
    std::map<std::size_t, Physical*> mine_;  ///< By the number of the binding.
    std::mutex mutex_;                       ///< Guards `opened_`, which kernels fill.
    std::map<ino_t, Opened> opened_;         ///< Memory that only other processes have handles of.
};

/// Waits until all devices of a multicast object were added: a real driver for ever, this one for
/// SYMM_TIMEOUT. Returns at once for other memory. Refuses what is no handle.
void wait_for_team(CUmemGenericAllocationHandle handle);

/// The memory of all devices behind an address where an object is mapped, for a kernel of `device`.
/// Empty where there is no object, where the device may not access it in this way, or where not
/// every device of its team has bound memory. Takes the emulator's mutex.
simt::MulticastCopies copies_of(int device, const void* address, simt::SwitchAccess access);

}  // namespace symm::emu
