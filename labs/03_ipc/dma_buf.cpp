#include "labs/03_ipc/dma_buf.hpp"

#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/sys/owner.hpp"

namespace symm {
namespace {

// A dma-buf mapped by the host for reading; empty where the kernel refuses.
class HostMapping : public Owner<HostMapping, Sized<void*>> {
public:
    HostMapping(const UniqueFd& fd, std::size_t bytes) {
        void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
        if (data != MAP_FAILED) {
            value_ = {data, bytes};
        }
    }
    const void* data() const { return value_.handle; }
    static void give_back(const Sized<void*>& mapping) { ::munmap(mapping.handle, mapping.bytes); }
};

}  // namespace

UniqueFd export_dma_buf(CUdeviceptr at, std::size_t bytes) {
    int fd = -1;
    cu_check(cuMemGetHandleForAddressRange(&fd, at, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
             "cuMemGetHandleForAddressRange({:#x}, size={}, dma-buf)", at, bytes);
    return UniqueFd(fd);
}

DmaBufReport try_dma_buf(CUdeviceptr at, std::size_t bytes) {
    UniqueFd fd;
    if (const auto refused =
            refusal({CUDA_ERROR_NOT_SUPPORTED}, [&] { fd = export_dma_buf(at, bytes); })) {
        return {false, false, refused->what()};
    }
    const HostMapping mapping(fd, bytes);
    if (!mapping) {
        return {true, false,
                fmt::format("dma-buf {}; the host may not map it ({}): it is meant for devices",
                            fd.get(), std::strerror(errno))};
    }
    std::vector<std::byte> expected(bytes);
    copy_to_host(expected.data(), at, bytes);
    // Tells the exporter that the processor reads, for caches that are not coherent. Some exporters
    // do not have this call.
    dma_buf_sync sync{DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ};
    ::ioctl(fd.get(), DMA_BUF_IOCTL_SYNC, &sync);
    const bool equal = std::memcmp(mapping.data(), expected.data(), bytes) == 0;
    sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ;
    ::ioctl(fd.get(), DMA_BUF_IOCTL_SYNC, &sync);
    if (!equal) {
        throw std::runtime_error(
            fmt::format("the {} bytes of dma-buf {} differ from the GPU's", bytes, fd.get()));
    }
    return {true, true,
            fmt::format("dma-buf {}, mapped by the host: {} bytes equal", fd.get(), bytes)};
}

}  // namespace symm
