// The kernels that are linked into the program, and their functions, found by address.

#include <cuda_runtime.h>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/emu/kernels/host_twin.hpp"
#include "labs/05_device_prims/kernel_ways/kernel_ways.hpp"

namespace symm {
namespace {

constexpr char kTableKernelName[] = "symm_kernel_with_table";

// The table in the GPU's memory. A function's address differs between GPU and host, so
// kOperations is no use there; this one is compiled for the GPU, with the GPU's addresses.
__device__ const Operation device_operations[] = {&scale_and_shift, &greatest, &least};
static_assert(std::size(device_operations) == kOperationCount);

__host__ __device__ Operation operation_at(std::uint32_t index) {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return device_operations[index];),
                      (return kOperations[index];))
}

__global__ void scale_and_shift_kernel(Numbers numbers, std::uint32_t a, std::uint32_t b) {
    apply(simt::ThreadBlock{}, numbers, a, b, &scale_and_shift);
}

__global__ void table_kernel(Numbers numbers, std::uint32_t a, std::uint32_t b,
                             std::uint32_t index) {
    apply(simt::ThreadBlock{}, numbers, a, b, operation_at(index));
}

void scale_and_shift_twin(const simt::ThreadBlock& block, Numbers numbers, std::uint32_t a,
                          std::uint32_t b) {
    apply(block, numbers, a, b, &scale_and_shift);
}

void table_twin(const simt::ThreadBlock& block, Numbers numbers, std::uint32_t a, std::uint32_t b,
                std::uint32_t index) {
    apply(block, numbers, a, b, operation_at(index));
}

// On the host a __global__ function's name is the address of a small host function. When the
// program starts, code that nvcc has added tells the runtime which kernel belongs to which address.
CUfunction by_symbol(const void* symbol, const char* name) {
    cudaFunction_t function = nullptr;
    cu_check(is_emulated() ? emu::get_function_of_twin(&function, name)
                           : static_cast<CUresult>(cudaGetFuncBySymbol(&function, symbol)),
             "cudaGetFuncBySymbol({})", name);
    return function;
}

}  // namespace

CUfunction scale_and_shift_by_symbol() {
    return by_symbol(reinterpret_cast<const void*>(&scale_and_shift_kernel), kKernelName);
}

CUfunction kernel_with_table() {
    return by_symbol(reinterpret_cast<const void*>(&table_kernel), kTableKernelName);
}

void add_kernel_twins() {
    emu::add_host_twin(kKernelName, &scale_and_shift_twin);
    emu::add_host_twin(kTableKernelName, &table_twin);
}

}  // namespace symm
