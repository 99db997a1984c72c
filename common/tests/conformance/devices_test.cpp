// Initialisation, devices, their attributes and their links.

#include <cstring>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Devices = Driver;

constexpr CUdevice kNoDevice = 9999;
constexpr auto kNoAttribute = static_cast<CUdevice_attribute>(255);

TEST_F(Devices, InitialiseAsOftenAsOneLikes) {
    EXPECT_OK(cuInit(0));
    EXPECT_OK(cuInit(0));
}

TEST_F(Devices, InitialisationTakesNoFlags) {
    EXPECT_RESULT(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Devices, TheirCountNeedsSomewhereToGo) {
    EXPECT_RESULT(cuDeviceGetCount(nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Devices, AreNumberedFromZero) {
    for (int i = 0; i < device_count(); ++i) {
        EXPECT_EQ(device(i), i);
    }
}

TEST_F(Devices, EndWhereTheCountSays) {
    CUdevice found = -1;
    EXPECT_RESULT(cuDeviceGet(&found, device_count()), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Devices, HaveNoNegativeNumbers) {
    CUdevice found = -1;
    EXPECT_RESULT(cuDeviceGet(&found, -1), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Devices, NeedSomewhereToGo) {
    EXPECT_RESULT(cuDeviceGet(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Devices, HaveANameThatEnds) {
    char name[256];
    std::memset(name, 'x', sizeof name);
    EXPECT_OK(cuDeviceGetName(name, sizeof name, device()));
    const std::size_t length = strnlen(name, sizeof name);
    EXPECT_GT(length, 0u);
    EXPECT_LT(length, sizeof name);
}

TEST_F(Devices, ThatDoNotExistHaveNoName) {
    char name[256];
    EXPECT_RESULT(cuDeviceGetName(name, sizeof name, kNoDevice), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Devices, HaveMemory) {
    std::size_t bytes = 0;
    EXPECT_OK(cuDeviceTotalMem(&bytes, device()));
    EXPECT_GE(bytes, std::size_t{64} << 20);
}

TEST_F(Devices, ThatDoNotExistHaveNoMemory) {
    std::size_t bytes = 0;
    EXPECT_RESULT(cuDeviceTotalMem(&bytes, kNoDevice), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Devices, TheirMemoryNeedsSomewhereToGo) {
    EXPECT_RESULT(cuDeviceTotalMem(nullptr, device()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Devices, ManageVirtualMemory) {
    for (int i = 0; i < device_count(); ++i) {
        EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, i), 1);
    }
}

TEST_F(Devices, ExportPosixDescriptors) {
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED), 1);
}

TEST_F(Devices, ShareOneAddressSpaceWithTheHost) {
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
}

TEST_F(Devices, SayHowTheyAreBuilt) {
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 1);
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 32);
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR), 32);
}

TEST_F(Devices, AnswerYesOrNoToWhatLearnersAsk) {
    for (auto which : {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
                       CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                       CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED}) {
        const int value = attribute(which);
        EXPECT_TRUE(value == 0 || value == 1) << "attribute " << which << " is " << value;
    }
}

TEST_F(Devices, LieNearANumaNodeOrSayThatTheyDoNot) {
    EXPECT_GE(attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID), -1);
}

TEST_F(Devices, KnowNoAttributeBeyondTheList) {
    int value = 0;
    EXPECT_RESULT(cuDeviceGetAttribute(&value, kNoAttribute, device()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Devices, ThatDoNotExistHaveNoAttributes) {
    int value = 0;
    EXPECT_RESULT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, kNoDevice),
                  CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Devices, TheirAttributesNeedSomewhereToGo) {
    EXPECT_RESULT(cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device()),
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Devices, ThatDoNotExistAreNobodysPeer) {
    int can = 0;
    EXPECT_RESULT(cuDeviceCanAccessPeer(&can, device(), kNoDevice), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_RESULT(cuDeviceCanAccessPeer(&can, kNoDevice, device()), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Devices, AreNotPeersOfThemselves) {
    int can = -1;
    EXPECT_OK(cuDeviceCanAccessPeer(&can, device(), device()));
    EXPECT_EQ(can, 0);
}

TEST_F(Devices, HaveNoLinkToThemselves) {
    int value = 0;
    EXPECT_RESULT(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
                                          device(), device()),
                  CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Devices, PeerAccessIsTheLinksAttributeToo) {
    if (device_count() < 2) {
        GTEST_SKIP() << "needs two devices";
    }
    for (int from = 0; from < device_count(); ++from) {
        for (int to = 0; to < device_count(); ++to) {
            if (from == to) {
                continue;
            }
            int can = -1;
            int supported = -1;
            EXPECT_OK(cuDeviceCanAccessPeer(&can, from, to));
            EXPECT_OK(cuDeviceGetP2PAttribute(&supported, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
                                              from, to));
            EXPECT_EQ(can, supported) << from << " to " << to;
        }
    }
}

TEST_F(Devices, LinksHaveARankAndSayWhetherTheyDoAtomics) {
    if (device_count() < 2) {
        GTEST_SKIP() << "needs two devices";
    }
    int rank = -1;
    EXPECT_OK(cuDeviceGetP2PAttribute(&rank, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0, 1));
    EXPECT_GE(rank, 0);
    int atomics = -1;
    EXPECT_OK(
        cuDeviceGetP2PAttribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 0, 1));
    EXPECT_TRUE(atomics == 0 || atomics == 1);
}

TEST_F(Devices, LinksKnowNoAttributeBeyondTheList) {
    if (device_count() < 2) {
        GTEST_SKIP() << "needs two devices";
    }
    int value = 0;
    EXPECT_RESULT(cuDeviceGetP2PAttribute(&value, static_cast<CUdevice_P2PAttribute>(7), 0, 1),
                  CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuDeviceGetP2PAttribute(nullptr, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1),
                  CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace symm::conformance
