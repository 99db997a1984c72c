// Access rights: given, read back, taken away, refused.

#include "labs/02_access/access.hpp"

#include <array>

#include "common/test_pattern/test_pattern.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"

namespace symm {
namespace {

constexpr auto kNone = CU_MEM_ACCESS_FLAGS_PROT_NONE;
constexpr auto kRead = CU_MEM_ACCESS_FLAGS_PROT_READ;
constexpr auto kReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

/// Mapped memory of device 0 that no device may access.
class Access : public AccessLabTest {
protected:
    void SetUp() override {
        AccessLabTest::SetUp();
        bytes_ = 2 * granularity(device_memory(0));
        memory_ = MappedMemory(device_memory(0), bytes_);
        at_ = memory_.base();
    }
    void TearDown() override {
        memory_ = {};
        AccessLabTest::TearDown();
    }
    std::vector<CUmemAccess_flags> rights() const {
        std::vector<CUmemAccess_flags> rights;
        for (const int device : all_devices()) {
            rights.push_back(access_of(at_, device));
        }
        return rights;
    }

    std::size_t bytes_ = 0;
    CUdeviceptr at_ = 0;
    MappedMemory memory_;
};

TEST_F(Access, IsNobodysAtFirst) {
    for (const CUmemAccess_flags right : rights()) {
        EXPECT_EQ(right, kNone);
    }
}

TEST_F(Access, IsGivenToAllInOneCall) {
    const std::vector<int> users = devices_that_reach(0);
    const long calls = is_emulated() ? emu::calls_made("cuMemSetAccess") : 0;
    allow(at_, bytes_, users);
    if (is_emulated()) {
        EXPECT_EQ(emu::calls_made("cuMemSetAccess"), calls + 1);
    }
    for (const int device : users) {
        EXPECT_EQ(access_of(at_, device), kReadWrite) << device;
        EXPECT_EQ(access_of(at_ + bytes_ - 1, device), kReadWrite) << device;
    }
}

TEST_F(Access, OfOneDeviceIsNoBusinessOfTheOthers) {
    SYMM_NEED_PEERS();
    const int guest = devices_that_reach(0).back();
    allow(at_, bytes_, std::array{guest});
    EXPECT_EQ(access_of(at_, 0), kNone) << "the owner needs access like all others";
    allow(at_, bytes_, std::array{0});
    EXPECT_EQ(access_of(at_, guest), kReadWrite);
    allow(at_, bytes_, std::array{guest}, kNone);
    EXPECT_EQ(access_of(at_, guest), kNone);
    EXPECT_EQ(access_of(at_, 0), kReadWrite);
}

TEST_F(Access, CanBeReadOnlyAndWidenedAgain) {
    allow(at_, bytes_, std::array{0}, kRead);
    EXPECT_EQ(access_of(at_, 0), kRead);
    allow(at_, bytes_, std::array{0});
    EXPECT_EQ(access_of(at_, 0), kReadWrite);
}

TEST_F(Access, OfNobodyChangesNothing) {
    allow(at_, bytes_, {});
    EXPECT_EQ(access_of(at_, 0), kNone);
}

TEST_F(Access, TakenAndGivenAgainFindsTheDataUnchanged) {
    const test_pattern::Range range{at_, 12345, 7};
    for (int round = 0; round < 10; ++round) {
        allow(at_, bytes_, std::array{0});
        if (round == 0) {
            test_pattern::fill(gpu(0), range);
        }
        EXPECT_EQ(test_pattern::compare(gpu(0), range).describe(), "all 12345 words right")
            << round;
        allow(at_, bytes_, std::array{0}, kNone);
    }
}

TEST_F(Access, IsRefusedWithTheCallAndItsValues) {
    for (const CUmemAccess_flags flags : {kNone, kReadWrite}) {
        try {
            allow(at_, bytes_, std::array{0, 99}, flags);
            FAIL() << "there is no device 99";
        } catch (const CudaError& error) {
            const std::string_view text = error.what();
            for (const std::string& value :
                 {std::string("cuMemSetAccess("), fmt::format("{:#x}", at_), std::to_string(bytes_),
                  std::string("0+99"), std::string(name_of(flags))}) {
                EXPECT_NE(text.find(value), text.npos) << "no '" << value << "' in " << text;
            }
        }
    }
    EXPECT_EQ(access_of(at_, 0), kNone) << "a refused call changes no rights";
}

// More devices than any machine has, so that an answer cannot assume a largest number.
TEST_F(Access, IsRefusedWhereTheLastOfManyDevicesIs) {
    std::vector<int> devices(5000, 0);
    devices.push_back(99);
    EXPECT_THROW(allow(at_, bytes_, devices), CudaError) << "the last of 5001 devices is unknown";
    EXPECT_EQ(access_of(at_, 0), kNone) << "a refused call changes no rights";
}

TEST_F(Access, IsRefusedWhereNothingIsMapped) {
    const AddressRange empty(bytes_);
    EXPECT_THROW(allow(empty.base(), bytes_, std::array{0}), CudaError);
    EXPECT_THROW(allow(at_, 2 * bytes_, std::array{0}), CudaError) << "reaches beyond the mapping";
    if (is_emulated()) {
        EXPECT_THROW(allow(at_, bytes_ - 1, std::array{0}), CudaError) << "ends inside the mapping";
    }
    EXPECT_THROW(access_of(empty.base(), 0), CudaError);
}

TEST_F(Access, OfTheHostIsRefusedForDeviceMemory) {
    if (!is_emulated()) {
        GTEST_SKIP() << "machines with a coherent link grant it";
    }
    EXPECT_THROW(allow_host(at_, bytes_, 0), CudaError);
}

TEST_F(AccessLabTest, DevicesAreNumberedFromZero) {
    const std::vector<int> devices = all_devices();
    ASSERT_EQ(devices.size(), gpus().size());
    for (std::size_t i = 0; i < devices.size(); ++i) {
        EXPECT_EQ(devices[i], static_cast<int>(i));
    }
    for (const int owner : devices) {
        const std::vector<int> reaching = devices_that_reach(owner);
        EXPECT_NE(std::find(reaching.begin(), reaching.end(), owner), reaching.end()) << owner;
    }
}

TEST_F(AccessLabTest, ASharedBufferIsOpenToItsUsersAndItsOwner) {
    for (const int owner : all_devices()) {
        const std::vector<int> users = devices_that_reach(owner);
        const SharedBuffer buffer(owner, 12345, users);
        EXPECT_EQ(buffer.memory().properties().location.id, owner);
        EXPECT_GE(buffer.size(), 12345u);
        for (const int user : users) {
            EXPECT_EQ(access_of(buffer.base(), user), kReadWrite);
        }
    }
}

TEST_F(AccessLabTest, ASharedBufferIsClosedToEverybodyElse) {
    SYMM_NEED_PEERS();
    const SharedBuffer buffer(last_device(), 4096, {});
    EXPECT_EQ(access_of(buffer.base(), last_device()), kReadWrite);
    EXPECT_EQ(access_of(buffer.base(), 0), kNone);
}

TEST_F(AccessLabTest, ASharedBufferWithAnImpossibleUserLeavesNothing) {
    EXPECT_THROW(SharedBuffer(0, 4096, std::array{99}), CudaError);
    EXPECT_THROW(SharedBuffer(99, 4096, {}), CudaError);
}

TEST_F(AccessLabTest, HostMemoryIsReadAndWrittenByTheHostAndEveryDevice) {
    const int node = host_node_of(0);
    const MappedMemory buffer(host_numa_memory(node), 100'000);
    allow_host(buffer.base(), buffer.size(), node);
    allow(buffer.base(), buffer.size(), all_devices());
    EXPECT_EQ(access_of(buffer.base(), node, CU_MEM_LOCATION_TYPE_HOST_NUMA), kReadWrite);
    constexpr std::size_t kWords = 24'999;  // not a multiple of a vector
    auto* words = buffer.as<std::uint32_t>();
    for (const Gpu& one : gpus()) {
        const auto seed = static_cast<std::uint32_t>(one.ordinal());
        for (std::size_t i = 0; i < kWords; ++i) {
            words[i] = test_pattern::word(seed, i);
        }
        EXPECT_TRUE(test_pattern::compare(one, {buffer.base(), kWords, seed}).right())
            << one.ordinal();
        test_pattern::fill(one, {buffer.base(), kWords, seed + 100});
        for (std::size_t i = 0; i < kWords; ++i) {
            ASSERT_EQ(words[i], test_pattern::word(seed + 100, i))
                << "device " << one.ordinal() << ", " << i;
        }
    }
}

TEST(AccessRights, HaveNames) {
    EXPECT_EQ(name_of(kNone), "none");
    EXPECT_EQ(name_of(kRead), "read");
    EXPECT_EQ(name_of(kReadWrite), "read/write");
}

}  // namespace
}  // namespace symm
