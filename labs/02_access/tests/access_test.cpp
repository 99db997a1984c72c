// Access rights: given, read back, taken away, refused.

#include "labs/02_access/access.hpp"

#include <fmt/core.h>

#include <array>
#include <string>

#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/few_calls.hpp"
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

    std::size_t bytes_ = 0;
    CUdeviceptr at_ = 0;
    MappedMemory memory_;
};

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
    SYMM_NEEDS(has_peers());
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

TEST_F(Access, IsRefusedWithTheCallAndItsValues) {
    for (const CUmemAccess_flags flags : {kNone, kReadWrite}) {
        try {
            allow(at_, bytes_, std::array{0, 99}, flags);
            FAIL() << "there is no device 99";
        } catch (const CudaError& error) {
            const std::string text = error.what();
            for (const std::string& value :
                 {std::string("cuMemSetAccess("), fmt::format("{:#x}", at_), std::to_string(bytes_),
                  std::string("0+99"), std::string(name_of(flags))}) {
                EXPECT_PRED_FORMAT2(::testing::IsSubstring, value, text);
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
    SYMM_NEEDS(is_emulated());  // machines with a coherent link grant it
    EXPECT_THROW(allow_host(at_, bytes_, 0), CudaError);
}

TEST_F(AccessLabTest, ASharedBufferIsOpenToItsUsersAndItsOwnerAlone) {
    for (const int owner : all_devices()) {
        const std::vector<int> peers = devices_that_reach(owner);
        for (const std::vector<int>& users : {peers, std::vector<int>{}}) {
            const SharedBuffer buffer(owner, 12345, users);
            EXPECT_EQ(buffer.memory().properties().location.id, owner);
            EXPECT_GE(buffer.size(), 12345u);
            for (const int device : peers) {
                EXPECT_EQ(access_of(buffer.base(), device),
                          device == owner || !users.empty() ? kReadWrite : kNone);
            }
        }
    }
}

TEST_F(AccessLabTest, ASharedBufferWithAnImpossibleUserLeavesNothing) {
    EXPECT_THROW(SharedBuffer(0, 4096, std::array{99}), CudaError);
    EXPECT_THROW(SharedBuffer(99, 4096, {}), CudaError);
}

// A row for each device, and a column for each mapping.
TEST_F(AccessLabTest, FewCallsGiveManyMappingsTheirRights) {
    const std::vector<int> devices = devices_that_reach(0);
    const long before = is_emulated() ? emu::calls_made("cuMemSetAccess") : 0;
    for (const std::vector<std::string>& table : {std::vector<std::string>{"wwwwww", "rrrrrr"},
                                                  {"wwwwwww", "wrw.wrw", "...r..."},
                                                  {"w.w.w.", "rrrwww", "..rr.."}}) {
        std::vector<Rights> wanted(table[0].size());
        for (std::size_t d = 0; d < std::min(devices.size(), table.size()); ++d) {
            for (std::size_t m = 0; m < wanted.size(); ++m) {
                const char c = table[d][m];
                wanted[m][devices[d]] = c == 'w' ? kReadWrite : c == 'r' ? kRead : kNone;
            }
        }
        const std::size_t bytes = granularity(device_memory(0));
        const AddressRange range(wanted.size() * bytes);
        std::vector<Mapping> mappings;
        for (std::size_t m = 0; m < wanted.size(); ++m) {
            mappings.emplace_back(range.base() + m * bytes, bytes,
                                  PhysicalMemory::create(device_memory(0), bytes));
        }
        allow_each(range.base(), bytes, std::vector(wanted));  // a copy of its own
        for (std::size_t m = 0; m < wanted.size(); ++m) {
            for (const auto& [device, flags] : wanted[m]) {
                EXPECT_EQ(name_of(access_of(mappings[m].address(), device)), name_of(flags))
                    << "device " << device << ", mapping " << m << " of " << wanted.size();
            }
        }
    }
    if (is_emulated()) {
        fmt::print("score: {}\n", emu::calls_made("cuMemSetAccess") - before);
    }
}

}  // namespace
}  // namespace symm
