#include "labs/03_ipc/dma_buf.hpp"

#include <fmt/core.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/sys/descriptor.hpp"

namespace symm {

std::string try_dma_buf(CUdeviceptr at, std::size_t bytes) {
    UniqueFd fd;
    // NOT_SUPPORTED: CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0.
    const auto refused = refusal({CUDA_ERROR_NOT_SUPPORTED}, [&] {
        int number = -1;
        cu_check(cuMemGetHandleForAddressRange(&number, at, bytes,
                                               CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
                 "cuMemGetHandleForAddressRange({:#x}, size={}, dma-buf)", at, bytes);
        fd = UniqueFd(number);
    });
    if (refused) {
        return refused->what();
    }
    std::vector<std::byte> expected(bytes);
    copy_to_host(expected.data(), at, bytes);
    void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (mapped == MAP_FAILED) {
        return fmt::format("dma-buf {}; the host cannot map it ({}): it is meant for devices",
                           fd.get(), std::strerror(errno));
    }
    // Tells the exporter that the processor reads, for caches that are not coherent. Some exporters
    // do not have this call.
    dma_buf_sync sync{DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ};
    ::ioctl(fd.get(), DMA_BUF_IOCTL_SYNC, &sync);
    const bool equal = std::memcmp(mapped, expected.data(), bytes) == 0;
    sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ;
    ::ioctl(fd.get(), DMA_BUF_IOCTL_SYNC, &sync);
    ::munmap(mapped, bytes);
    if (!equal) {
        throw std::runtime_error(
            fmt::format("the {} bytes of dma-buf {} differ from the GPU's", bytes, fd.get()));
    }
    return fmt::format("dma-buf {}, mapped by the host: {} bytes equal", fd.get(), bytes);
}

}  // namespace symm
