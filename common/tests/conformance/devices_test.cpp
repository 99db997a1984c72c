// Initialisation, devices, their attributes and their links.

#include <cstring>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Devices = Driver;

TEST_F(Devices, AreInitialisedAsOftenAsOneLikes) {
    EXPECT_OK(cuInit(0));
    EXPECT_OK(cuInit(0));
    EXPECT_INVALID(cuInit(1));
}

TEST_F(Devices, AreNumberedFromZeroToTheirCount) {
    for (int i = 0; i < device_count(); ++i) {
        EXPECT_EQ(device(i), i);
    }
    CUdevice found = -1;
    EXPECT_RESULT(cuDeviceGet(&found, device_count()), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_RESULT(cuDeviceGet(&found, -1), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Devices, HaveANameThatEnds) {
    char name[256];
    std::memset(name, 'x', sizeof name);
    EXPECT_OK(cuDeviceGetName(name, sizeof name, device()));
    const std::size_t length = strnlen(name, sizeof name);
    EXPECT_GT(length, 0u);
    EXPECT_LT(length, sizeof name);
}

TEST_F(Devices, CanWhatTheLabsNeed) {
    for (int i = 0; i < device_count(); ++i) {
        EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, i), 1);
    }
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED), 1);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 1);
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 32);
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR), 32);
    EXPECT_GE(node(), -1);
    for (auto which : {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
                       CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                       CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED}) {
        const int value = attribute(which);
        EXPECT_TRUE(value == 0 || value == 1) << "attribute " << which << " is " << value;
    }
}

TEST_F(Devices, ThatDoNotExistHaveNothing) {
    char name[256];
    std::size_t bytes = 0;
    int value = 0;
    for (const CUresult result :
         {cuDeviceGetName(name, sizeof name, kNoDevice), cuDeviceTotalMem(&bytes, kNoDevice),
          cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, kNoDevice),
          cuDeviceCanAccessPeer(&value, device(), kNoDevice),
          cuDeviceCanAccessPeer(&value, kNoDevice, device())}) {
        EXPECT_EQ(result, CUDA_ERROR_INVALID_DEVICE);
    }
}

TEST_F(Devices, AnswersNeedSomewhereToGoAndAKnownQuestion) {
    EXPECT_INVALID(cuDeviceGetCount(nullptr));
    EXPECT_INVALID(cuDeviceGet(nullptr, 0));
    EXPECT_INVALID(cuDeviceTotalMem(nullptr, device()));
    EXPECT_INVALID(
        cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device()));
    int value = 0;
    EXPECT_INVALID(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(255), device()));
}

TEST_F(Devices, AreNotPeersOfThemselves) {
    int can = -1;
    EXPECT_OK(cuDeviceCanAccessPeer(&can, device(), device()));
    EXPECT_EQ(can, 0);
    EXPECT_RESULT(
        cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device(), device()),
        CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Devices, PeerAccessIsTheLinksAttributeToo) {
    for (int from = 0; from < device_count(); ++from) {
        for (int to = 0; to < device_count(); ++to) {
            int can = -1;
            int supported = -1;
            if (from != to) {
                EXPECT_OK(cuDeviceCanAccessPeer(&can, from, to));
                EXPECT_OK(cuDeviceGetP2PAttribute(
                    &supported, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, from, to));
            }
            EXPECT_EQ(can, supported) << from << " to " << to;
        }
    }
}

TEST_F(Devices, LinksHaveARankAndSayWhetherTheyDoAtomics) {
    SYMM_NEEDS(device_count() >= 2);
    int rank = -1;
    EXPECT_OK(cuDeviceGetP2PAttribute(&rank, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 1));
    EXPECT_GE(rank, 0);
    int atomics = -1;
    EXPECT_OK(
        cuDeviceGetP2PAttribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 0, 1));
    EXPECT_TRUE(atomics == 0 || atomics == 1);
    EXPECT_INVALID(cuDeviceGetP2PAttribute(&atomics, static_cast<CUdevice_P2PAttribute>(7), 0, 1));
    EXPECT_INVALID(
        cuDeviceGetP2PAttribute(nullptr, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
}

}  // namespace
}  // namespace symm::conformance
