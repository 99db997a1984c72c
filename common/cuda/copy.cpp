#include "common/cuda/copy.hpp"

#include "common/cuda/check.hpp"

namespace symm {

void copy_to_device(CUdeviceptr to, const void* from, std::size_t bytes) {
    cu_check(cuMemcpyHtoD(to, from, bytes), "cuMemcpyHtoD(address={:#x}, size={})", to, bytes);
    cu_check(cuStreamSynchronize(nullptr), "cuStreamSynchronize(the default stream)");
}

void copy_to_host(void* to, CUdeviceptr from, std::size_t bytes) {
    cu_check(cuMemcpyDtoH(to, from, bytes), "cuMemcpyDtoH(address={:#x}, size={})", from, bytes);
}

void zero(CUdeviceptr address, std::size_t bytes) {
    fill(address, 0, bytes);
}

void fill(CUdeviceptr address, unsigned char value, std::size_t bytes) {
    cu_check(cuMemsetD8Async(address, value, bytes, nullptr),
             "cuMemsetD8Async(address={:#x}, size={})", address, bytes);
    cu_check(cuStreamSynchronize(nullptr), "cuStreamSynchronize(the default stream)");
}

}  // namespace symm
