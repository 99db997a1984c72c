#include "labs/03_ipc/imported_memory.hpp"

#include <cstdint>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"

namespace symm {

PhysicalMemory import_fd(const UniqueFd& fd, std::size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    // The pointer argument is the descriptor itself, not the address of one.
    cu_check(cuMemImportFromShareableHandle(
                 &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd.get())),
                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
             "cuMemImportFromShareableHandle(POSIX file descriptor {}, size={})", fd.get(), bytes);
    return PhysicalMemory::adopt(handle, bytes);
}

PhysicalMemory import_fabric(const CUmemFabricHandle& handle, std::size_t bytes) {
    CUmemGenericAllocationHandle memory = 0;
    CUmemFabricHandle copy = handle;  // the driver takes a pointer to non-const
    cu_check(cuMemImportFromShareableHandle(&memory, &copy, CU_MEM_HANDLE_TYPE_FABRIC),
             "cuMemImportFromShareableHandle(FABRIC, size={})", bytes);
    return PhysicalMemory::adopt(memory, bytes);
}

void require_peer_access(int device, int owner) {
    const bool seen_here = owner >= 0 && owner < device_count();
    if (seen_here && !can_access(device, owner)) {
        throw std::runtime_error(
            fmt::format("device {} cannot access device {}'s memory (no peer access). Use ranks on "
                        "devices that are peers (CUDA_VISIBLE_DEVICES), or host memory (lab 04).",
                        device, owner));
    }
}

}  // namespace symm
