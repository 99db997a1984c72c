#pragma once
/// \file
/// Who may touch what, and how page protection, which knows no devices, stands in for it.
///
/// Each mapping has a table of what every device and the host may do. Pages have one protection for
/// all threads of the process, so it is the union of the rights of those who might touch them now:
/// of the host and the devices that run kernels, or of all devices while none does or while a copy
/// runs. Protection changes when a kernel starts, and only for mappings where devices differ
/// (`restricted`). So a kernel faults on memory its device may not touch, unless a kernel of a
/// device that may runs beside it; and host code that touches device memory is caught only where no
/// device has been given access. Plain memory (cuMemAlloc) is open to every device.

#include <cuda.h>

#include <cstddef>

namespace symm::emu {

struct Emulator;
struct Mapping;

/// Whether kernels of `device` can reach memory of `owner`, by SYMM_EMU_P2P.
bool can_reach(int device, int owner);

/// What an address range is to a copy.
enum class Range {
    kUnknown,    ///< Nothing the driver knows: pageable host memory.
    kForbidden,  ///< Known, but not wholly mapped, not accessible, or left by the range.
    kHost,       ///< Pinned host memory.
    kDevice,     ///< Memory made for a device (or a host NUMA node, but by the driver).
};
struct RangeFound {
    Range range = Range::kUnknown;
    int owner = -1;  ///< The device it is on; kHost for the host.
};

/// Looks a range up; takes the emulator's mutex.
RangeFound find_range(CUdeviceptr pointer, std::size_t size, bool write);

/// Protects pages for the work of one device, or for a copy, while it lives.
class WorkScope {
public:
    static constexpr int kCopy = -1;
    explicit WorkScope(int device_or_copy);
    ~WorkScope();
    WorkScope(const WorkScope&) = delete;
    WorkScope& operator=(const WorkScope&) = delete;

private:
    int device_;
};

}  // namespace symm::emu
