#pragma once
/// \file
/// Who may access which memory, and how the protection of pages enforces it.
///
/// Each mapping has a table of what every device and the host may do, and one protection for all
/// threads of the process. A kernel or a copy sets it when it starts, from the rights of those that
/// run then: README.md tells which accesses fault.

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <optional>

namespace symm::emu {

/// Whether kernels of `device` can reach memory of `owner`, by SYMM_EMU_P2P.
[[nodiscard]] bool can_reach(int device, int owner);

/// The owner of an address range that a copy reads or writes: a device or kHost; nothing for memory
/// that the driver does not know, pageable host memory. Refuses a range that begins in memory of
/// the driver, but is not all mapped and accessible. Takes the emulator's mutex.
[[nodiscard]] std::optional<int> find_owner(CUdeviceptr pointer, std::size_t size, bool write);

/// Exists while a kernel or a copy runs, and protects the pages for it.
class WorkScope {
public:
    /// `running` is Device::kernels or Emulator::copies.
    explicit WorkScope(std::atomic<int>& running);
    ~WorkScope();
    WorkScope(const WorkScope&) = delete;

private:
    std::atomic<int>& running_;
};

}  // namespace symm::emu
