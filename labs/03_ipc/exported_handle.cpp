#include "labs/03_ipc/exported_handle.hpp"

#include "common/cuda/check.hpp"

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

}  // namespace symm
