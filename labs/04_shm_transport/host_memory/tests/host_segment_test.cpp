// HostSegment and its two paths: what is shared, what is refused, what is left.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "common/cuda/stream.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"
#include "labs/02_access/access.hpp"
#include "labs/04_shm_transport/host_memory/host_segment.hpp"
#include "labs/04_shm_transport/host_memory/tests/segment_counts.hpp"

namespace symm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<int>& both_devices() {
    static const std::vector<int> devices =
        device_count() > 1 ? std::vector<int>{0, 1} : std::vector<int>{0};
    return devices;
}

class Segment : public LabTest, public ::testing::WithParamInterface<HostPath> {
protected:
    void SetUp() override {
        LabTest::SetUp();
        if (GetParam() == HostPath::kCuMem && probe_host_path(0).path != HostPath::kCuMem) {
            GTEST_SKIP() << probe_host_path(0).why_not_cumem;
        }
        counts_ = segment_counts();
    }
    void TearDown() override {
        EXPECT_EQ(segment_counts(), counts_) << "shared memory is left";
        LabTest::TearDown();
    }
    static HostSegment make(std::size_t bytes) {
        return HostSegment::create(GetParam(), bytes, both_devices());
    }
    static HostSegment attach(const HostSegment& other) {
        return HostSegment::attach(GetParam(), other.share(), other.size(), both_devices());
    }

private:
    SegmentCounts counts_;
};

INSTANTIATE_TEST_SUITE_P(Paths, Segment, ::testing::Values(HostPath::kCuMem, HostPath::kPosix),
                         [](const auto& info) { return std::string(name_of(info.param)); });

unsigned char* bytes_of(const HostSegment& segment) {
    return static_cast<unsigned char*>(segment.host());
}

TEST_P(Segment, IsZeroAndAtLeastAsLargeAsAskedFor) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{3'000'001}}) {
        const HostSegment segment = make(bytes);
        ASSERT_GE(segment.size(), bytes);
        EXPECT_TRUE(std::all_of(bytes_of(segment), bytes_of(segment) + segment.size(),
                                [](unsigned char byte) { return byte == 0; }));
    }
}

TEST_P(Segment, IsOneMemoryForTheHostAndBothDevices) {
    const HostSegment segment = make(3 * 4096);
    for (const int device : both_devices()) {
        const Device gpu(device);
        const Stream stream;
        for (const std::size_t at : {std::size_t{5}, segment.size() - 8}) {
            std::memset(segment.host(), 0x11, segment.size());
            ASSERT_EQ(cuMemsetD8Async(segment.address() + at,
                                      static_cast<unsigned char>(0x40 + device), 7, stream.get()),
                      CUDA_SUCCESS)
                << "device " << device << " cannot write at " << at << " of " << segment.size();
            stream.synchronize();
            EXPECT_EQ(bytes_of(segment)[at - 1], 0x11);
            EXPECT_EQ(bytes_of(segment)[at], 0x40 + device);
            EXPECT_EQ(bytes_of(segment)[at + 6], 0x40 + device);
            EXPECT_EQ(bytes_of(segment)[at + 7], 0x11);
        }
    }
    device_->make_current();
}

// Memory of the other path is open to the host by mmap, to all devices by the registration.
class CuMemSegment : public Segment {};
INSTANTIATE_TEST_SUITE_P(Paths, CuMemSegment, ::testing::Values(HostPath::kCuMem),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// The emulated driver would let the host and all GPUs write to host memory all the same.
TEST_P(CuMemSegment, IsOpenToTheHostAndToEachDevice) {
    const HostSegment segment = make(4096);
    EXPECT_EQ(access_of(segment.address(), host_node_of(0), CU_MEM_LOCATION_TYPE_HOST_NUMA),
              CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        << "no access for the host";
    for (const int device : both_devices()) {
        EXPECT_EQ(access_of(segment.address(), device), CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            << "device " << device << " may not read and write";
    }
    if (device_count() > 1) {
        const HostSegment of_one = HostSegment::create(GetParam(), 4096, std::array{0});
        EXPECT_EQ(access_of(of_one.address(), 1), CU_MEM_ACCESS_FLAGS_PROT_NONE)
            << "access for device 1, which was not named";
    }
}

// The emulated driver, as if GPU d were near to NUMA node d + 1, and all host memory on node 2.
class NodePerDevice {
public:
    NodePerDevice() {
        opened.clear();
        table = driver = driver_table();
        table.cuDeviceGetAttribute_ = [](int* value, CUdevice_attribute which, CUdevice device) {
            const CUresult result = driver.cuDeviceGetAttribute_(value, which, device);
            *value = which == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID ? device + 1 : *value;
            return result;
        };
        table.cuMemGetAllocationPropertiesFromHandle_ = [](CUmemAllocationProp* properties,
                                                           CUmemGenericAllocationHandle handle) {
            const CUresult result =
                driver.cuMemGetAllocationPropertiesFromHandle_(properties, handle);
            const bool is_host = properties->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
            properties->location.id = is_host ? 2 : properties->location.id;
            return result;
        };
        table.cuMemSetAccess_ = [](CUdeviceptr address, std::size_t bytes,
                                   const CUmemAccessDesc* list, std::size_t count) {
            for (const CUmemAccessDesc& entry : std::span(list, count)) {
                if (entry.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA) {
                    opened.push_back(entry.location.id);
                }
            }
            return driver.cuMemSetAccess_(address, bytes, list, count);
        };
        use_driver_table(&table);
    }
    ~NodePerDevice() { use_driver_table(&driver); }

    static inline std::vector<int> opened;  // nodes whose memory the host got access to

private:
    static inline DriverTable driver;
    static inline DriverTable table;
};

TEST_P(Segment, IsOfTheDeviceNamedFirst) {
    SYMM_NEEDS(is_emulated() && device_count() >= 2);
    const HostSegment made = make(4096);
    const NodePerDevice machine;
    const HostSegment attached =
        HostSegment::attach(GetParam(), made.share(), made.size(), std::array{1, 0});
    CUdevice current = 0;
    EXPECT_EQ(cuCtxGetDevice(&current), CUDA_SUCCESS);
    device_->make_current();
    if (GetParam() == HostPath::kPosix) {
        EXPECT_EQ(current, 1) << "registered by a device that was not named first";
    } else {
        EXPECT_EQ(machine.opened, std::vector{2})
            << "memory of node 2, but host access for other nodes";
    }
}

TEST_P(Segment, IsTheSameMemoryWhereItIsAttached) {
    const HostSegment made = make(5000);
    const HostSegment attached = attach(made);
    EXPECT_NE(made.host(), attached.host());
    EXPECT_EQ(made.size(), attached.size());
    bytes_of(made)[4999] = 0xc3;
    EXPECT_EQ(bytes_of(attached)[4999], 0xc3);
    bytes_of(attached)[0] = 0x3c;
    EXPECT_EQ(bytes_of(made)[0], 0x3c);
}

TEST_P(Segment, LivesAsLongAsAnybodyHasIt) {
    HostSegment made = make(100);
    bytes_of(made)[99] = 0x77;
    HostSegment attached = attach(made);
    made = HostSegment();
    EXPECT_EQ(bytes_of(attached)[99], 0x77);
}

TEST_P(Segment, IsHandedOnByItsMakerAlone) {
    const HostSegment made = make(100);
    const HostSegment attached = attach(made);
    if (GetParam() == HostPath::kPosix) {  // any copy of its descriptor works
        bytes_of(made)[99] = 0x77;
        EXPECT_EQ(bytes_of(attach(attached))[99], 0x77);
    } else if (!is_emulated()) {  // emulated, both have the same handle
        EXPECT_THROW(attach(attached), CudaError);
    }
}

TEST_P(Segment, IsNotMadeFromADescriptorOfSomethingElse) {
    // An anonymous file of the right size, but not made by this lab.
    UniqueFd stranger(memfd_create("stranger", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(stranger.get(), 2 << 20), 0);
    EXPECT_THROW(HostSegment::attach(GetParam(), std::move(stranger), 2 << 20, both_devices()),
                 std::runtime_error);
    EXPECT_ANY_THROW(HostSegment::attach(GetParam(), UniqueFd(), 4096, both_devices()));
}

TEST_P(Segment, IsRefusedWhereThereIsNotSoMuchMemory) {
    EXPECT_ANY_THROW(make(std::size_t{1} << 46));
    EXPECT_ANY_THROW(make(~std::size_t{0} - 100));
}

TEST_P(Segment, NamesTheDriverCallThatFails) {
    SYMM_NEEDS(is_emulated());
    const HostSegment made = make(4096);  // also makes one-time calls, such as cuInit
    const std::size_t create_calls =
        fail_each_call([] { return std::make_shared<HostSegment>(make(4096)); });
    EXPECT_GE(create_calls, GetParam() == HostPath::kCuMem ? 6U : 3U);
    const std::size_t attach_calls =
        fail_each_call([&] { return std::make_shared<HostSegment>(attach(made)); });
    EXPECT_GE(attach_calls, GetParam() == HostPath::kCuMem ? 5U : 3U);
}

TEST(SharedMemoryFile, CannotBeShrunkUnderItsReaders) {
    const SharedMemoryFile file = SharedMemoryFile::create(10'000);
    EXPECT_EQ(file.size(), 12'288U);
    EXPECT_NE(ftruncate(file.fd().get(), 0), 0);
    EXPECT_NE(ftruncate(file.fd().get(), 1 << 20), 0);
    EXPECT_THROW(SharedMemoryFile::attach(file.fd().duplicate(), 8192), std::runtime_error);
}

TEST(HostRegistration, OutlivesTheContextOfWhoMadeIt) {
    const SharedMemoryFile file = SharedMemoryFile::create(4096);
    const int other = device_count() - 1;
    std::optional<Device> maker(other);
    HostRegistration registration(other, file.data(), file.size());
    maker.reset();
    const Device user(0);
    const Stream stream;
    cu_check(cuMemsetD8Async(registration.address(), 9, file.size(), stream.get()),
             "cuMemsetD8Async()");
    stream.synchronize();
    EXPECT_EQ(static_cast<unsigned char*>(file.data())[4095], 9);
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemHostGetDevicePointer(&address, file.data(), 0), CUDA_SUCCESS);
    registration = HostRegistration();
    EXPECT_EQ(cuMemHostUnregister(file.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST(HostPathChoice, IsPosixWhereTheEnvironmentSaysSo) {
    ASSERT_EQ(setenv("SYMM_CUMEM_HOST_ENABLE", "0", 1), 0);
    const HostPathChoice choice = probe_host_path(0);
    ASSERT_EQ(unsetenv("SYMM_CUMEM_HOST_ENABLE"), 0);
    EXPECT_EQ(choice.path, HostPath::kPosix);
    EXPECT_EQ(choice.why_not_cumem, "SYMM_CUMEM_HOST_ENABLE=0");
}

// Only a refusal leads to POSIX; any other error is thrown.
TEST(HostPathChoice, IsPosixWhereTheDriverRefusesAnyStepOfCuMem) {
    const Device device(0);
    SYMM_NEEDS(is_emulated());
    ASSERT_EQ(probe_host_path(0).path, HostPath::kCuMem);
    const emu::Inventory before = emu::inventory();
    for (const char* call : {"cuMemCreate", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess",
                             "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle"}) {
        for (const CUresult result :
             {CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_SUPPORTED,
              CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, CUDA_ERROR_UNKNOWN, CUDA_ERROR_OUT_OF_MEMORY}) {
            emu::fail_call(call, 1, result);
            if (result == CUDA_ERROR_UNKNOWN || result == CUDA_ERROR_OUT_OF_MEMORY) {
                EXPECT_THROW(probe_host_path(0), CudaError) << call;
            } else {
                const HostPathChoice choice = probe_host_path(0);
                EXPECT_EQ(choice.path, HostPath::kPosix) << call;
                EXPECT_THAT(choice.why_not_cumem,
                            AllOf(HasSubstr(call), HasSubstr(std::string(name_of(result)))));
            }
            emu::clear_failures();
            EXPECT_EQ(emu::inventory(), before) << call;
        }
    }
}

}  // namespace
}  // namespace symm
