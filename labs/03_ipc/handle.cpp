#include "labs/03_ipc/handle.hpp"

#include <cstdint>

#include "common/cuda/check.hpp"

namespace symm {

UniqueFd export_descriptor(const PhysicalMemory& memory) {
    int descriptor = -1;
    cu_check(cuMemExportToShareableHandle(&descriptor, memory.handle(),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
             "cuMemExportToShareableHandle(POSIX file descriptor, size={})", memory.size());
    return UniqueFd(descriptor);
}

PhysicalMemory import_descriptor(const UniqueFd& descriptor, std::size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    // The descriptor is passed as the pointer itself, not by a pointer to it.
    cu_check(cuMemImportFromShareableHandle(
                 &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.get())),
                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
             "cuMemImportFromShareableHandle(POSIX file descriptor {}, size={})", descriptor.get(),
             bytes);
    return PhysicalMemory::adopt(handle, bytes);
}

CUmemFabricHandle export_fabric(const PhysicalMemory& memory) {
    CUmemFabricHandle fabric{};
    cu_check(cuMemExportToShareableHandle(&fabric, memory.handle(), CU_MEM_HANDLE_TYPE_FABRIC, 0),
             "cuMemExportToShareableHandle(FABRIC, size={})", memory.size());
    return fabric;
}

PhysicalMemory import_fabric(const CUmemFabricHandle& handle, std::size_t bytes) {
    CUmemGenericAllocationHandle memory = 0;
    CUmemFabricHandle copy = handle;  // the driver takes a pointer to non-const
    cu_check(cuMemImportFromShareableHandle(&memory, &copy, CU_MEM_HANDLE_TYPE_FABRIC),
             "cuMemImportFromShareableHandle(FABRIC, size={})", bytes);
    return PhysicalMemory::adopt(memory, bytes);
}

}  // namespace symm
