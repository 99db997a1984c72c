// Callers round to the granularity. It and the properties are in memory_properties.cpp.

#include "labs/01_vmm_alloc/physical_memory.hpp"

#include <fmt/core.h>

#include "common/cuda/check.hpp"
#include "common/sys/environment.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"

namespace symm {

PhysicalMemory PhysicalMemory::create(const CUmemAllocationProp& properties, std::size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result = cuMemCreate(&handle, bytes, &properties, 0);
    // The usual reason for INVALID_VALUE: the size is not a multiple of the granularity.
    std::string hint;
    std::size_t unit = 0;
    if (result == CUDA_ERROR_INVALID_VALUE &&
        cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
            CUDA_SUCCESS) {
        hint = fmt::format("; the granularity is {}", unit);
    }
    cu_check(result, "cuMemCreate(size={}, {} {}{})", bytes, kind_name(properties),
             properties.location.id, hint);
    return adopt(handle, bytes);
}

PhysicalMemory PhysicalMemory::adopt(CUmemGenericAllocationHandle handle, std::size_t bytes) {
    return PhysicalMemory(Sized<CUmemGenericAllocationHandle>{handle, bytes});
}

PhysicalMemory PhysicalMemory::mapped_at(CUdeviceptr address) {
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result = cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(address));
    const std::string_view hint =
        result != CUDA_ERROR_INVALID_VALUE ? ""
        : env::number("SYMM_CUMEM_ENABLE") == 0
            ? "; SYMM_CUMEM_ENABLE=0 allocates with cuMemAlloc, whose memory has no handle to share"
            : "; memory from cuMemCreate and cuMemMap (mem_alloc()) has a handle to share, memory "
              "from cuMemAlloc and a freed address have none";
    cu_check(result, "cuMemRetainAllocationHandle(address={:#x}{})", address, hint);
    PhysicalMemory memory = adopt(handle, 0);  // owned from here on: the next call may fail
    const CUresult found = cuMemGetAddressRange(nullptr, &memory.value_.bytes, address);
    cu_check(found, "cuMemGetAddressRange(address={:#x}{})", address,
             found == CUDA_ERROR_NOT_FOUND ? "; give a device access first (cuMemSetAccess)" : "");
    return memory;
}

CUmemAllocationProp PhysicalMemory::properties() const {
    CUmemAllocationProp properties{};
    cu_check(cuMemGetAllocationPropertiesFromHandle(&properties, handle()),
             "cuMemGetAllocationPropertiesFromHandle(handle={:#x})", handle());
    return properties;
}

void PhysicalMemory::give_back(const Sized<CUmemGenericAllocationHandle>& memory) {
    cu_check(cuMemRelease(memory.handle), "cuMemRelease(handle={:#x}, size={})", memory.handle,
             memory.bytes);
}

}  // namespace symm
