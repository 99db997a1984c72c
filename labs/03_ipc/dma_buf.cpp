#include "labs/03_ipc/dma_buf.hpp"

#include <fmt/core.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"

namespace symm {
namespace {

// A dma-buf mapped for reading, while it lives.
class HostView {
public:
    HostView(const UniqueFd& descriptor, std::size_t bytes)
        : bytes_(bytes),
          data_(::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor.get(), 0)) {}
    HostView(const HostView&) = delete;
    HostView& operator=(const HostView&) = delete;
    ~HostView() {
        if (*this) {
            ::munmap(data_, bytes_);
        }
    }
    explicit operator bool() const { return data_ != MAP_FAILED; }
    const void* data() const { return data_; }

private:
    std::size_t bytes_;
    void* data_;
};

}  // namespace

UniqueFd export_dma_buf(CUdeviceptr at, std::size_t bytes) {
    int descriptor = -1;
    cu_check(cuMemGetHandleForAddressRange(&descriptor, at, bytes,
                                           CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
             "cuMemGetHandleForAddressRange({:#x}, size={}, dma-buf)", at, bytes);
    return UniqueFd(descriptor);
}

DmaBufReport try_dma_buf(CUdeviceptr at, std::size_t bytes) {
    DmaBufReport report;
    UniqueFd descriptor;
    if (const auto refused =
            refusal({CUDA_ERROR_NOT_SUPPORTED}, [&] { descriptor = export_dma_buf(at, bytes); })) {
        report.text = refused->what();
        return report;
    }
    report.exported = true;
    const HostView view(descriptor, bytes);
    if (!view) {
        report.text =
            fmt::format("dma-buf {}; the host may not map it ({}): it is meant for other devices",
                        descriptor.get(), std::strerror(errno));
        return report;
    }
    report.mapped = true;
    std::vector<std::byte> expected(bytes);
    copy_to_host(expected.data(), at, bytes);
    // Tells the exporter that the processor reads now, so that caches agree. Not every exporter
    // cares.
    dma_buf_sync sync{DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ};
    ::ioctl(descriptor.get(), DMA_BUF_IOCTL_SYNC, &sync);
    report.equal = std::memcmp(view.data(), expected.data(), bytes) == 0;
    sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ;
    ::ioctl(descriptor.get(), DMA_BUF_IOCTL_SYNC, &sync);
    report.text = fmt::format("dma-buf {}, mapped by the host: {} bytes {}", descriptor.get(),
                              bytes, report.equal ? "equal" : "DIFFER");
    return report;
}

}  // namespace symm
