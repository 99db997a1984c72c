#pragma once
/// \file
/// Memory of a GPU as a dma-buf: a descriptor that other *drivers* understand.
///
/// A POSIX handle of cuMemExportToShareableHandle means something to the CUDA driver only. A
/// dma-buf is the kernel's own way to hand memory from one driver to another: with it a network
/// card writes straight into the GPU (ibv_reg_dmabuf_mr), without the older nv_peermem module. It
/// is made from addresses, not from a handle, and works for cuMemAlloc's memory too. Source: CUDA
/// Driver API, cuMemGetHandleForAddressRange; NCCL's ncclIbRegMrDmaBuf in src/transport/net_ib.cc.

#include <cuda.h>

#include <cstddef>
#include <string>

#include "common/sys/descriptor.hpp"

namespace symm {

/// A dma-buf of [at, at + bytes), both multiples of the page size. Throws CudaError
/// (CUDA_ERROR_NOT_SUPPORTED where CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0).
UniqueFd export_dma_buf(CUdeviceptr at, std::size_t bytes);

/// What became of a dma-buf on this machine.
struct DmaBufReport {
    bool exported = false;
    bool mapped = false;  ///< The host could map it: few drivers allow that.
    bool equal = false;   ///< The host read there what the GPU has.
    std::string text;     ///< All of that in a sentence, with the reasons.
};

/// Exports the memory, maps the dma-buf into the host's addresses where the kernel lets it, and
/// compares with a copy made by the driver. Never throws for what the machine does not allow.
DmaBufReport try_dma_buf(CUdeviceptr at, std::size_t bytes);

}  // namespace symm
