#include "labs/03_ipc/memory_handle.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/ranks/rank.hpp"

namespace symm {

UniqueFd export_fd(const PhysicalMemory& memory) {
    int fd = -1;
    cu_check(cuMemExportToShareableHandle(&fd, memory.handle(),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
             "cuMemExportToShareableHandle(POSIX file descriptor, size={})", memory.size());
    return UniqueFd(fd);
}

CUmemFabricHandle export_fabric(const PhysicalMemory& memory) {
    CUmemFabricHandle fabric{};
    cu_check(cuMemExportToShareableHandle(&fabric, memory.handle(), CU_MEM_HANDLE_TYPE_FABRIC, 0),
             "cuMemExportToShareableHandle(FABRIC, size={})", memory.size());
    return fabric;
}

PhysicalMemory import_memory(const UniqueFd& fd, std::size_t bytes) {
    CUmemGenericAllocationHandle memory = 0;
    // The pointer argument is the file descriptor itself, not the address of one.
    cu_check(cuMemImportFromShareableHandle(
                 &memory, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd.get())),
                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
             "cuMemImportFromShareableHandle(POSIX file descriptor {}, size={})", fd.get(), bytes);
    return PhysicalMemory::adopt(memory, bytes);
}

PhysicalMemory import_memory(const CUmemFabricHandle& handle, std::size_t bytes) {
    CUmemGenericAllocationHandle memory = 0;
    CUmemFabricHandle copy = handle;  // the driver takes a pointer to non-const
    cu_check(cuMemImportFromShareableHandle(&memory, &copy, CU_MEM_HANDLE_TYPE_FABRIC),
             "cuMemImportFromShareableHandle(FABRIC, size={})", bytes);
    return PhysicalMemory::adopt(memory, bytes);
}

void require_peer_access(const Rank& rank, int peer) {
    const int device = rank.device();
    const std::optional<int> owner = rank.device_of(peer);
    if (owner && !can_access(device, *owner)) {
        throw std::runtime_error(
            fmt::format("device {} cannot access device {}'s memory (no peer access). Use ranks on "
                        "devices that are peers (CUDA_VISIBLE_DEVICES), or host memory (lab 04).",
                        device, *owner));
    }
}

}  // namespace symm
