#include "labs/01_vmm_alloc/attributes.hpp"

#include <cuda.h>
#include <fmt/format.h>

#include <string_view>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"

namespace symm {

namespace {

struct Row {
    CUdevice_attribute attribute;
    std::string_view name;
    std::string_view meaning;
};

constexpr Row kRows[] = {
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "VIRTUAL_MEMORY_MANAGEMENT",
     "cuMemCreate, cuMemMap and the rest of this lab"},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "HANDLE_TYPE_POSIX_FD",
     "handles go to other processes as descriptors (lab 03)"},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, "HANDLE_TYPE_FABRIC",
     "handles go to other machines; 1 is no promise, cuMemCreate may still refuse"},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, "HOST_NUMA_ID",
     "the host's NUMA node that is nearest, -1 for none (lab 04)"},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, "GPU_DIRECT_RDMA_WITH_CUDA_VMM",
     "network cards reach memory made by cuMemCreate"},
    {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, "DMA_BUF",
     "an address range becomes a dma-buf descriptor (lab 03)"},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, "UNIFIED_ADDRESSING",
     "one address space for the host and all devices"},
};

}  // namespace

std::string attribute_table(int device) {
    std::string text =
        fmt::format("{:<32} {:>5}  {}\n", "CU_DEVICE_ATTRIBUTE_...", "value", "says");
    const CUdevice handle = device_handle(device);
    for (const Row& row : kRows) {
        int value = 0;
        cu_check(cuDeviceGetAttribute(&value, row.attribute, handle),
                 "cuDeviceGetAttribute({}, device={})", row.name, device);
        text += fmt::format("{:<32} {:>5}  {}\n", row.name, value, row.meaning);
    }
    return text;
}

}  // namespace symm
