#pragma once
/// \file
/// Memory of a GPU as a dma-buf: a file descriptor that other *drivers* understand.
///
/// The file descriptor of export_fd() means something to the CUDA driver only. A dma-buf is the
/// Linux kernel's way to pass memory from one driver to another: with it a network card writes
/// directly into the GPU (ibv_reg_dmabuf_mr), without the older nv_peermem module. It is made from
/// a range of addresses, not from a handle, and also works for memory of cuMemAlloc. Source: CUDA
/// Driver API, cuMemGetHandleForAddressRange; NCCL's ncclIbRegMrDmaBuf in src/transport/net_ib.cc.

#include <cuda.h>

#include <cstddef>
#include <string>

#include "common/sys/descriptor.hpp"

namespace symm {

/// A dma-buf of [at, at + bytes), both multiples of the page size. Throws CudaError
/// (CUDA_ERROR_NOT_SUPPORTED where CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0).
UniqueFd export_dma_buf(CUdeviceptr at, std::size_t bytes);

/// What this machine allows.
struct DmaBufReport {
    bool exported = false;
    bool mapped = false;  ///< By the host: few drivers allow that.
    std::string text;     ///< The same as a sentence, with the reasons.
};

/// Exports the memory. Where the kernel allows it, maps the dma-buf on the host and compares it with
/// a copy made by the driver; throws std::runtime_error where they differ. Does not throw for what
/// the machine refuses.
DmaBufReport try_dma_buf(CUdeviceptr at, std::size_t bytes);

}  // namespace symm
