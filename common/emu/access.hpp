#pragma once
/// \file
/// Who may touch what, and how the protection of pages enforces it.
///
/// Each mapping has a table of what every device and the host may do. A page has one protection for
/// all threads of the process, whichever device's kernel they run. So the protection allows what
/// any of those may do that might touch the page now: the host and the devices that run kernels, or
/// all devices while no kernel runs or while a copy does. It is set again whenever a kernel or a
/// copy starts.
///
/// So a kernel that touches memory its device may not touch faults, unless a kernel of a device
/// that may runs at the same time. Host code that touches device memory faults only where no device
/// has access. Plain memory (cuMemAlloc) is open to every device.

#include <cuda.h>

#include <atomic>
#include <cstddef>

namespace symm::emu {

/// Whether kernels of `device` can reach memory of `owner`, by SYMM_EMU_P2P.
bool can_reach(int device, int owner);

/// What an address range is to a copy.
enum class Range {
    kUnknown,    ///< Nothing the driver knows: pageable host memory.
    kForbidden,  ///< It begins in memory of the driver, but leaves it or may not be touched.
    kKnown,      ///< Memory of the driver, wholly accessible.
};
struct RangeFound {
    Range range = Range::kUnknown;
    int owner = -1;  ///< The device it is on; kHost for the host.
};

/// Looks a range up; takes the emulator's mutex.
RangeFound find_range(CUdeviceptr pointer, std::size_t size, bool write);

/// Exists while a kernel or a copy runs, and protects the pages for it.
class WorkScope {
public:
    /// Counts it in Device::kernels or in Emulator::copies.
    explicit WorkScope(std::atomic<int>& running);
    ~WorkScope();
    WorkScope(const WorkScope&) = delete;
    WorkScope& operator=(const WorkScope&) = delete;

private:
    std::atomic<int>& running_;
};

}  // namespace symm::emu
