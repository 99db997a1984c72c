#pragma once
/// \file
/// Memory of a GPU as a dma-buf: a file descriptor that other *drivers* understand.
///
/// The file descriptor of export_fd() means something to the CUDA driver only. A dma-buf is the
/// Linux kernel's way to pass memory from one driver to another: with it a network card writes
/// directly into the GPU (ibv_reg_dmabuf_mr), without the older nv_peermem module. It is made from
/// a range of addresses, not from a handle, and also works for cuMemAlloc's memory. Source: CUDA
/// Driver API, cuMemGetHandleForAddressRange; NCCL's ncclIbRegMrDmaBuf in src/transport/net_ib.cc.

#include <cuda.h>

#include <cstddef>
#include <string>

namespace symm {

/// Exports [at, at + bytes) as a dma-buf; `at` and `bytes` are multiples of the page size. If
/// the kernel allows it, maps the dma-buf on the host and compares it with a copy made by the
/// driver. Returns what happened, with the reason if the machine refuses a step. Throws
/// CudaError for an error that is not a refusal, std::runtime_error if the data differs. Needs a
/// current context that can reach the memory.
std::string try_dma_buf(CUdeviceptr at, std::size_t bytes);

}  // namespace symm
