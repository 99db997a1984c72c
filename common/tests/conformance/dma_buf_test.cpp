// cuMemGetHandleForAddressRange: a range of addresses as a dma-buf descriptor.

#include "common/sys/descriptor.hpp"
#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

constexpr auto kDmaBuf = CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;

class DmaBuf : public Driver {
protected:
    void SetUp() override {
        Driver::SetUp();
        if (attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) == 0) {
            GTEST_SKIP() << "the device has no dma-buf";
        }
    }
};

TEST_F(DmaBuf, IsADescriptorOfMappedMemory) {
    Buffer buffer(1);
    int fd = -1;
    ASSERT_OK(cuMemGetHandleForAddressRange(&fd, buffer.base(), buffer.size(), kDmaBuf, 0));
    EXPECT_GE(fd, 0);
    const UniqueFd owner(fd);
}

TEST_F(DmaBuf, IsADescriptorOfPartOfIt) {
    Buffer buffer(2);
    int fd = -1;
    ASSERT_OK(cuMemGetHandleForAddressRange(&fd, buffer.base() + unit(), unit(), kDmaBuf, 0));
    EXPECT_GE(fd, 0);
    const UniqueFd owner(fd);
}

TEST_F(DmaBuf, IsADescriptorOfMemAllocMemory) {
    CUdeviceptr plain = 0;
    ASSERT_OK(cuMemAlloc(&plain, unit()));
    int fd = -1;
    EXPECT_OK(cuMemGetHandleForAddressRange(&fd, plain, unit(), kDmaBuf, 0));
    const UniqueFd owner(fd);
    EXPECT_OK(cuMemFree(plain));
}

TEST_F(DmaBuf, WantsMappedMemory) {
    Range range(unit());
    int fd = -1;
    EXPECT_NE(cuMemGetHandleForAddressRange(&fd, range.base(), unit(), kDmaBuf, 0), CUDA_SUCCESS);
}

TEST_F(DmaBuf, RefusesNoBytes) {
    Buffer buffer(1);
    int fd = -1;
    EXPECT_RESULT(cuMemGetHandleForAddressRange(&fd, buffer.base(), 0, kDmaBuf, 0),
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DmaBuf, WantsWholePages) {
    Buffer buffer(1);
    int fd = -1;
    EXPECT_RESULT(cuMemGetHandleForAddressRange(&fd, buffer.base() + 8, 4096, kDmaBuf, 0),
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DmaBuf, NeedsSomewhereToGo) {
    Buffer buffer(1);
    EXPECT_RESULT(cuMemGetHandleForAddressRange(nullptr, buffer.base(), buffer.size(), kDmaBuf, 0),
                  CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace symm::conformance
