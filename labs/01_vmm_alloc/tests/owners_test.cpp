// PhysicalMemory, AddressRange, Mapping, DeviceBuffer and their properties.

#include <fmt/core.h>

#include <limits>
#include <utility>

#include "common/tests/text_thrown_by.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/own_context.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"

namespace symm {
namespace {

class Owners : public LabTest {
protected:
    std::size_t unit() { return granularity(device_memory(0)); }

    static std::string error_of(const std::function<void()>& path) {
        const std::string text = testing::text_thrown_by(path);
        return text.empty() ? "nothing was thrown" : text;
    }
};
using RoundUp = Owners;
using SegmentSize = Owners;
using PhysicalMemoryTest = Owners;
using AddressRangeTest = Owners;
using MappingTest = Owners;
using DeviceBufferTest = Owners;
using OwnContextTest = Owners;

#define EXPECT_SAYS(text, part) EXPECT_PRED_FORMAT2(::testing::IsSubstring, part, text)

TEST_F(RoundUp, GoesToTheNextMultiple) {
    EXPECT_EQ(round_up(0, 8), 0u);
    EXPECT_EQ(round_up(1, 8), 8u);
    EXPECT_EQ(round_up(8, 8), 8u);
    EXPECT_EQ(round_up(9, 8), 16u);
    EXPECT_EQ(round_up(8, 3), 9u);
    EXPECT_EQ(round_up(10, 3), 12u);
    const std::size_t large = std::size_t{1} << 60;
    EXPECT_EQ(round_up(large + 1, 8), large + 8);
}

TEST_F(RoundUp, DoesNotWrapAround) {
    const std::size_t most = std::numeric_limits<std::size_t>::max();
    EXPECT_EQ(round_up(most, 1), most);
    EXPECT_EQ(round_up(most, 8), most - 7);
    EXPECT_EQ(round_up(most - 7, 8), most - 7);
}

TEST_F(SegmentSize, Is256MiBOrSoMuchMoreThat64SegmentsAreEnough) {
    constexpr std::size_t kQuick = std::size_t{256} << 20;
    constexpr std::size_t kMost = 64;
    for (const std::size_t unit : {std::size_t{2} << 20, std::size_t{32} << 20}) {
        for (const std::size_t bytes :
             {unit, kQuick - unit, kQuick, kQuick + unit, 2 * kQuick, kMost * kQuick - unit,
              kMost * kQuick, kMost * kQuick + unit, 100 * kQuick + unit, std::size_t{1} << 40}) {
            const std::size_t piece = segment_size(bytes, unit);
            EXPECT_EQ(piece % unit, 0u) << bytes;
            EXPECT_LE((bytes + piece - 1) / piece, kMost) << bytes;
            if (bytes <= kMost * kQuick) {
                EXPECT_EQ(piece, kQuick) << bytes;
            } else {
                EXPECT_GE(piece, bytes / kMost) << bytes;
                EXPECT_LT(piece, bytes / kMost + unit) << "larger than necessary";
            }
        }
    }
}

TEST_F(PhysicalMemoryTest, OfABrokenSizeTellsTheGranularity) {
    for (const std::size_t bytes : {0, 12345}) {
        const std::string error =
            error_of([&] { (void)PhysicalMemory::create(device_memory(0), bytes); });
        EXPECT_SAYS(error, fmt::format("cuMemCreate(size={}", bytes));
        EXPECT_SAYS(error, "CUDA_ERROR_INVALID_VALUE");
        EXPECT_SAYS(error, std::to_string(unit()));
    }
}

TEST_F(PhysicalMemoryTest, IsReleasedOnceHoweverItMoves) {
    auto first = PhysicalMemory::create(device_memory(0), unit());
    const auto handle = first.handle();
    PhysicalMemory second = std::move(first);
    EXPECT_EQ(second.handle(), handle);
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): promised to be empty
    EXPECT_EQ(first.size(), 0u);
    PhysicalMemory third;
    third = std::move(second);
    EXPECT_EQ(third.handle(), handle);
    auto again = PhysicalMemory::adopt(third.release().handle, unit());
    EXPECT_FALSE(third);
    again.close();
    EXPECT_FALSE(again);
    again.close();  // nothing is left to drop
}

TEST_F(PhysicalMemoryTest, IsFoundByTheAddressItIsMappedAt) {
    const DeviceBuffer buffer(0, 2 * unit());
    const PhysicalMemory found = PhysicalMemory::mapped_at(buffer.base() + unit() + 5);
    EXPECT_EQ(found.handle(), buffer.memory().handle());
    EXPECT_EQ(found.size(), 2 * unit());
}

TEST_F(PhysicalMemoryTest, IsNotFoundWhereNothingIsMapped) {
    const AddressRange range(unit());
    EXPECT_SAYS(error_of([&] { (void)PhysicalMemory::mapped_at(range.base()); }),
                "memory from cuMemCreate and cuMemMap (mem_alloc()) has a handle");
    const MappedMemory inaccessible(device_memory(0), unit());
    EXPECT_SAYS(error_of([&] { (void)PhysicalMemory::mapped_at(inaccessible.base()); }),
                "cuMemSetAccess");
}

TEST_F(AddressRangeTest, IsAlignedAsAsked) {
    const AddressRange range(unit(), 16 * unit());
    EXPECT_EQ(range.base() % (16 * unit()), 0u);
    EXPECT_EQ(range.end(), range.base() + unit());
}

TEST_F(MappingTest, PutsMemoryAtAnAddressAndKeepsItAlive) {
    const AddressRange range(unit());
    auto memory = PhysicalMemory::create(device_memory(0), unit());
    const Mapping mapping(range.base(), unit(), memory);
    EXPECT_EQ(mapping.address(), range.base());
    give_access(range.base(), unit(), 0);  // before this the driver does not know the mapping
    EXPECT_EQ(PhysicalMemory::mapped_at(range.base()).handle(), memory.handle());
    memory.close();
    EXPECT_TRUE(PhysicalMemory::mapped_at(range.base()));
}

TEST_F(MappingTest, OntoAMappingNamesAddressAndSize) {
    const auto memory = PhysicalMemory::create(device_memory(0), unit());
    const AddressRange range(unit());
    const Mapping mapping(range.base(), unit(), memory);
    const std::string error = error_of([&] { Mapping second(range.base(), unit(), memory); });
    EXPECT_SAYS(error, fmt::format("cuMemMap(address={:#x}, size={}", range.base(), unit()));
}

TEST_F(DeviceBufferTest, HoldsWhatIsWritten) {
    for (std::size_t bytes : {std::size_t{1}, unit() - 1, unit(), unit() + 1}) {
        const DeviceBuffer buffer(0, bytes);
        EXPECT_EQ(buffer.size(), round_up(bytes, unit()));
        if (is_emulated()) {
            EXPECT_EQ(emu::inventory()["reserved bytes"], buffer.size())
                << "more addresses or fewer";
            EXPECT_EQ(emu::inventory()["physical bytes"], buffer.size()) << "more memory or less";
        }
        fill(buffer.base(), buffer.size(), 1);
        EXPECT_TRUE(holds(buffer.base(), buffer.size(), 1)) << bytes;
    }
}

TEST_F(DeviceBufferTest, ExistsOnEveryDevice) {
    for (int i = 0; i < device_count(); ++i) {
        const Device device(i);
        const DeviceBuffer buffer(i, 1000);
        fill(buffer.base(), 1000, static_cast<unsigned>(i));
        EXPECT_TRUE(holds(buffer.base(), 1000, static_cast<unsigned>(i))) << "device " << i;
        EXPECT_EQ(buffer.memory().properties().location.id, i);
    }
    device_->make_current();
}

TEST_F(DeviceBufferTest, MovesWithItsContents) {
    DeviceBuffer first(0, unit());
    fill(first.base(), 400, 7);
    DeviceBuffer second;
    EXPECT_FALSE(second);
    second = std::move(first);
    EXPECT_TRUE(holds(second.base(), 400, 7));
    second = DeviceBuffer(0, 2 * unit());  // the former buffer is freed
    EXPECT_EQ(second.size(), 2 * unit());
}

TEST_F(DeviceBufferTest, IsOpenToItsDeviceOnly) {
    for (int device = 0; device < device_count(); ++device) {
        const DeviceBuffer buffer(device, 1);
        for (int other = 0; other < device_count(); ++other) {
            EXPECT_EQ(rights_of(other, buffer.base()), other == device
                                                           ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE)
                << "device " << other << ", buffer of device " << device;
        }
    }
}

TEST_F(DeviceBufferTest, AnAccessThatIsRefusedNamesAllValues) {
    const MappedMemory memory(device_memory(0), 3 * unit());
    const int nowhere = 123456789;
    const std::string error = error_of([&] { give_access(memory.base(), memory.size(), nowhere); });
    EXPECT_SAYS(error, fmt::format("{:x}", memory.base())) << " lacks the address";
    EXPECT_SAYS(error, std::to_string(memory.size())) << " lacks the size";
    EXPECT_SAYS(error, std::to_string(nowhere)) << " lacks the device";
}

TEST_F(DeviceBufferTest, MappedMemoryHasThePropertiesThatWereAsked) {
    const int last = device_count() - 1;
    const MappedMemory memory(device_memory(last, CU_MEM_HANDLE_TYPE_NONE), 1);
    EXPECT_EQ(memory.memory().properties().location.id, last);
    EXPECT_EQ(memory.memory().properties().requestedHandleTypes, CU_MEM_HANDLE_TYPE_NONE);
}

TEST_F(DeviceBufferTest, BeyondTheDeviceSaysHowMuchWasAsked) {
    for (const std::size_t bytes :
         {std::size_t{1} << 40, std::numeric_limits<std::size_t>::max()}) {
        EXPECT_SAYS(error_of([&] { DeviceBuffer buffer(0, bytes); }),
                    fmt::format("(size={},", round_up(bytes, unit())));
    }
}

TEST_F(DeviceBufferTest, OfNoBytesIsRefused) {
    EXPECT_SAYS(error_of([] { DeviceBuffer buffer(0, 0); }), "(size=0,");
}

TEST_F(OwnContextTest, IsCurrentUntilItIsDestroyedWithItsAllocations) {
    CUcontext current = nullptr;
    {
        const OwnContext own(0);
        EXPECT_NE(own.get(), device_->context());
        cu_check(cuCtxGetCurrent(&current), "cuCtxGetCurrent");
        EXPECT_EQ(current, own.get());
        CUdeviceptr memory = 0;  // freed with the context, which the fixture's count confirms
        cu_check(cuMemAlloc(&memory, 4000), "cuMemAlloc");
        fill(memory, 4000, 3);
        EXPECT_TRUE(holds(memory, 4000, 3));
    }
    cu_check(cuCtxGetCurrent(&current), "cuCtxGetCurrent");
    EXPECT_EQ(current, device_->context());
}

}  // namespace
}  // namespace symm
