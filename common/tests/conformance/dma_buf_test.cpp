// cuMemGetHandleForAddressRange: a range of addresses as a dma-buf descriptor.

#include "common/sys/descriptor.hpp"
#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

class DmaBuf : public Driver {
protected:
    void SetUp() override { SYMM_NEEDS(attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) != 0); }
    static CUresult export_range(int& fd, CUdeviceptr base, std::size_t bytes) {
        return cuMemGetHandleForAddressRange(&fd, base, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                             0);
    }
};

TEST_F(DmaBuf, IsADescriptorOfMappedOrMemAllocMemory) {
    Buffer buffer(2);
    Allocation plain(unit());
    for (const auto& [base, bytes] : {std::pair(buffer.base(), buffer.size()),
                                      {buffer.base() + unit(), unit()},
                                      {plain.base, unit()}}) {
        int fd = -1;
        ASSERT_OK(export_range(fd, base, bytes));
        EXPECT_GE(fd, 0);
        const UniqueFd owner(fd);
    }
}

TEST_F(DmaBuf, WantsWholePagesOfMappedMemory) {
    Range range(unit());
    Buffer buffer(1);
    int fd = -1;
    EXPECT_NE(export_range(fd, range.base(), unit()), CUDA_SUCCESS);
    EXPECT_INVALID(export_range(fd, buffer.base(), 0));
    EXPECT_INVALID(export_range(fd, buffer.base() + 8, 4096));
    EXPECT_INVALID(cuMemGetHandleForAddressRange(nullptr, buffer.base(), buffer.size(),
                                                 CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
}

}  // namespace
}  // namespace symm::conformance
