#include "common/cuda/copy.hpp"

#include "common/cuda/check.hpp"

namespace symm {

void copy_to_device(CUdeviceptr to, const void* from, std::size_t bytes) {
    check(cuMemcpyHtoD(to, from, bytes), "cuMemcpyHtoD(address={:#x}, size={})", to, bytes);
    check(cuStreamSynchronize(nullptr), "cuStreamSynchronize(the default stream)");
}

void copy_to_host(void* to, CUdeviceptr from, std::size_t bytes) {
    check(cuMemcpyDtoH(to, from, bytes), "cuMemcpyDtoH(address={:#x}, size={})", from, bytes);
}

}  // namespace symm
