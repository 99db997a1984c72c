#pragma once
/// \file
/// Three ways to a kernel. Each ends with a CUfunction for cuLaunchKernel. On emulated GPUs the
/// host twins of the kernels run; only the PTX way makes the same calls there as on a GPU.
///
/// | way | where the code is | how the host finds it |
/// |---|---|---|
/// | PTX | a text in the program, which the driver compiles | by name: cuLibraryGetKernel |
/// | symbol | machine code in the program, from a static library | by address: cudaGetFuncBySymbol |
/// | table | machine code, called by one kernel | an index, a parameter of that kernel |
///
/// Source: CUDA Driver API, "Library Management"; NCCL's ncclDevFuncTable in src/device/common.h.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/cuda/device_memory.hpp"
#include "common/cuda/gpu.hpp"
#include "common/sys/owner.hpp"
#include "labs/05_device_prims/kernel_ways/kernel_work.hpp"

namespace symm {

/// The PTX of kernel_for_ptx.cu, and the name of its kernel.
extern const char kKernelPtx[];
inline constexpr char kKernelName[] = "symm_scale_and_shift";

/// Way 1. Owns a library that the driver has made from PTX. Move-only.
class PtxLibrary : public Owner<PtxLibrary, CUlibrary> {
public:
    PtxLibrary() = default;
    /// Throws CudaError: CUDA_ERROR_INVALID_IMAGE for text that is not PTX, CUDA_ERROR_INVALID_PTX
    /// for PTX that does not compile, CUDA_ERROR_UNSUPPORTED_PTX_VERSION if the driver is older
    /// than the compiler. A real driver may read the text later: then function() throws them.
    explicit PtxLibrary(const char* ptx);

    /// The kernel's function in the current context. Throws CudaError: CUDA_ERROR_NOT_FOUND if the
    /// PTX has no such entry; emulated, CUDA_ERROR_NO_BINARY_FOR_GPU if it has no host twin; and
    /// the constructor's errors.
    CUfunction function(const std::string& name) const;

    static void give_back(CUlibrary library);
};

/// Way 2. A `__global__` function of a static library (lab05 itself is one) in the current context.
/// Throws CudaError.
CUfunction scale_and_shift_by_symbol();

/// Way 3. A kernel with one more parameter: the index of the function of its table that it calls.
/// Throws CudaError.
CUfunction kernel_with_table();

/// The functions of the table, in its order. The other kernels have the first one only.
inline constexpr Operation kOperations[] = {&scale_and_shift, &greatest, &least};
inline constexpr const char* kOperationNames[] = {"scale and shift", "greatest", "least"};
inline constexpr std::uint32_t kOperationCount = 3;

/// Numbers on a device, and the check of a kernel's results.
class KernelTrial {
public:
    /// `gpu` must outlive this. `count` may be any number, including 0. Throws CudaError.
    KernelTrial(const Gpu& gpu, std::size_t count);

    /// Launches the kernel and waits for its end. Throws CudaError, and std::invalid_argument for
    /// an index that is not in the table (the kernel would call something that is not a function).
    void run(CUfunction function, std::uint32_t index = 0) const;
    /// Overwrites all results.
    void poison() const;
    /// Compares every result with the host's. Throws std::runtime_error that names the first wrong
    /// number, or the number after the last if that was overwritten.
    void check(std::uint32_t index = 0) const;

private:
    const Gpu& gpu_;
    std::size_t count_;
    DeviceMemory in_;
    DeviceMemory out_;  ///< `count_` + 1 numbers: the last one is never written.
};

/// Registers the host twins of all kernels here. The functions above need them on emulated GPUs.
void add_kernel_twins();

}  // namespace symm
