// mem_alloc, mem_free, GrowableBuffer.

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/growable_buffer.hpp"
#include "labs/01_vmm_alloc/mem_alloc.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"

namespace symm {
namespace {

class MemAlloc : public LabTest {
protected:
    static std::size_t unit() { return granularity(device_memory(0)); }
    static CUdeviceptr address(const void* pointer) {
        return reinterpret_cast<CUdeviceptr>(pointer);
    }
};
using Growable = MemAlloc;

TEST_F(MemAlloc, GivesMemoryThatHoldsWhatIsWritten) {
    for (std::size_t bytes : {std::size_t{1}, unit() - 4, unit(), 3 * unit() + 8}) {
        void* pointer = mem_alloc(bytes);
        const std::size_t usable = bytes / 4 * 4;
        fill(address(pointer), usable, 1);
        EXPECT_TRUE(holds(address(pointer), usable, 1)) << bytes;
        mem_free(pointer);
    }
}

TEST_F(MemAlloc, IsOneSegmentUpTo256MiBAndSegmentsOfThatBeyond) {
    constexpr std::size_t kQuick = std::size_t{256} << 20;
    const std::pair<std::size_t, std::size_t> cases[] = {
        {5 * unit(), 1}, {kQuick, 1}, {kQuick + 1, 2}, {2 * kQuick, 2}};
    for (const auto& [bytes, count] : cases) {
        void* pointer = mem_alloc(bytes);
        EXPECT_EQ(segments_from(pointer).size(), count) << bytes;
        mem_free(pointer);
    }
}

TEST_F(MemAlloc, HasSegmentsOfTheSizeThatWasAsked) {
    for (const std::size_t units : {1, 2, 5}) {
        for (const std::size_t per_segment : {1, 2}) {
            void* pointer = mem_alloc(units * unit(), per_segment * unit());
            const auto segments = segments_from(pointer);
            ASSERT_EQ(segments.size(), (units + per_segment - 1) / per_segment);
            std::size_t left = units * unit();
            for (const Segment& segment : segments) {
                EXPECT_EQ(segment.address, address(pointer) + units * unit() - left);
                EXPECT_EQ(segment.bytes, std::min(left, per_segment * unit()));
                EXPECT_EQ(segment.properties.location.id, 0);
                left -= segment.bytes;
            }
            fill(address(pointer), units * unit(), 2);
            EXPECT_TRUE(holds(address(pointer), units * unit(), 2));
            mem_free(pointer);
        }
    }
}

TEST_F(MemAlloc, NeighboursStayApart) {
    std::vector<void*> pointers;
    for (unsigned i = 0; i < 8; ++i) {
        pointers.push_back(mem_alloc(2 * unit(), unit()));
        fill(address(pointers[i]), 2 * unit(), i);
    }
    for (unsigned i = 0; i < 8; i += 2) {
        mem_free(pointers[i]);
    }
    for (unsigned i = 1; i < 8; i += 2) {
        EXPECT_EQ(segments_from(pointers[i]).size(), 2u);
        EXPECT_TRUE(holds(address(pointers[i]), 2 * unit(), i)) << i;
        mem_free(pointers[i]);
    }
}

TEST_F(MemAlloc, IsMemoryOfTheCurrentContextsDeviceThatCanBeExported) {
    const int last = device_count() - 1;
    const Device device(last);
    void* pointer = mem_alloc(1);
    const CUmemAllocationProp properties = segments_from(pointer)[0].properties;
    EXPECT_EQ(properties.location.id, last);
    EXPECT_NE(properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    mem_free(pointer);
    device_->make_current();
}

TEST_F(MemAlloc, IsOpenToEveryPeer) {
    void* pointer = mem_alloc(unit());
    for (int other = 0; other < device_count(); ++other) {
        EXPECT_EQ(rights_of(other, address(pointer)), can_access(other, 0)
                                                          ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                          : CU_MEM_ACCESS_FLAGS_PROT_NONE)
            << "device " << other;
    }
    mem_free(pointer);
}

TEST_F(MemAlloc, BeyondTheDeviceIsRefusedAndLeavesNothing) {
    for (std::size_t segment : {std::size_t{0}, device_->total_memory() / 4}) {
        try {
            mem_alloc(2 * device_->total_memory(), segment);
            ADD_FAILURE() << "nothing was thrown";
        } catch (const CudaError& error) {
            EXPECT_EQ(error.result(), CUDA_ERROR_OUT_OF_MEMORY) << error.what();
        }
    }
}

TEST_F(MemAlloc, OfNoBytesIsRefusedAndFreeingNothingIsFine) {
    EXPECT_THROW(mem_alloc(0), CudaError);
    mem_free(nullptr);
}

TEST_F(MemAlloc, FreeingFromTheMiddleOrTwiceIsRefusedAndChangesNothing) {
    void* pointer = mem_alloc(3 * unit(), unit());
    fill(address(pointer), 3 * unit(), 3);
    char* bytes = static_cast<char*>(pointer);
    EXPECT_THROW(mem_free(bytes + 8), std::invalid_argument);
    EXPECT_THROW(mem_free(bytes + unit()), std::invalid_argument);
    EXPECT_TRUE(holds(address(pointer), 3 * unit(), 3));
    mem_free(pointer);
    EXPECT_THROW(mem_free(pointer), CudaError);
}

TEST_F(MemAlloc, FallsBackToPlainMemoryWhereVirtualMemoryIsOff) {
    setenv("SYMM_CUMEM_ENABLE", "0", 1);
    void* pointer = mem_alloc(1000);
    unsetenv("SYMM_CUMEM_ENABLE");
    EXPECT_TRUE(segments_from(pointer).empty());
    fill(address(pointer), 1000, 4);
    EXPECT_TRUE(holds(address(pointer), 1000, 4));
    mem_free(pointer);  // finds out by itself how it was allocated
}

TEST_F(Growable, StartsWithAddressesOnly) {
    const GrowableBuffer buffer(0, 10 * unit() + 1);
    EXPECT_EQ(buffer.capacity(), 11 * unit());
    EXPECT_EQ(buffer.size(), 0u);
    EXPECT_NE(buffer.base(), 0u);
}

TEST_F(Growable, GrowsInPlaceAndKeepsWhatItHolds) {
    GrowableBuffer buffer(0, 16 * unit());
    const CUdeviceptr base = buffer.base();
    std::size_t filled = 0;
    for (unsigned round = 0; round < 5; ++round) {
        buffer.resize(filled + (1 + round) * unit() - 100);
        EXPECT_EQ(buffer.base(), base);
        EXPECT_EQ(buffer.size(), filled + (1 + round) * unit());
        EXPECT_EQ(buffer.pieces().size(), round + 1);
        if (is_emulated()) {
            EXPECT_EQ(emu::inventory()["physical bytes"], buffer.size())
                << "the buffer has memory that is not mapped";
        }
        fill(base + filled, buffer.size() - filled, round);
        filled = buffer.size();
    }
    std::size_t offset = 0;
    for (unsigned round = 0; round < 5; ++round) {
        EXPECT_TRUE(holds(base + offset, (1 + round) * unit(), round)) << "piece " << round;
        offset += (1 + round) * unit();
    }
}

TEST_F(Growable, ShrinksByWholePieces) {
    GrowableBuffer buffer(0, 8 * unit());
    buffer.resize(unit());
    buffer.resize(3 * unit());
    buffer.resize(7 * unit());
    fill(buffer.base(), unit(), 1);
    buffer.resize(4 * unit());  // inside the last piece, which therefore stays
    EXPECT_EQ(buffer.size(), 7 * unit());
    buffer.resize(3 * unit());
    EXPECT_EQ(buffer.size(), 3 * unit());
    buffer.resize(1);
    EXPECT_EQ(buffer.size(), unit());
    EXPECT_TRUE(holds(buffer.base(), unit(), 1));
    buffer.resize(0);
    EXPECT_EQ(buffer.size(), 0u);
    buffer.resize(8 * unit());  // and grows again
    EXPECT_EQ(buffer.size(), 8 * unit());
}

TEST_F(Growable, GivesMemoryBackWhenItShrinks) {
    const std::size_t most = device_->total_memory() / 2 / unit() * unit();
    GrowableBuffer buffer(0, most);
    for (int round = 0; round < 4; ++round) {
        buffer.resize(most);
        buffer.resize(0);
    }
}

TEST_F(Growable, IsMemoryOfItsDeviceForItsDevice) {
    for (int device = 0; device < device_count(); ++device) {
        GrowableBuffer buffer(device, 2 * unit());
        buffer.resize(1);
        for (int other = 0; other < device_count(); ++other) {
            EXPECT_EQ(rights_of(other, buffer.base()), other == device
                                                           ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE)
                << "device " << other << ", buffer of device " << device;
        }
        const PhysicalMemory memory = PhysicalMemory::mapped_at(buffer.base());
        EXPECT_EQ(memory.properties().location.id, device) << "the memory is of another device";
    }
}

TEST_F(Growable, BeyondItsCapacityIsRefused) {
    GrowableBuffer buffer(0, 2 * unit());
    buffer.resize(1);
    const std::size_t most = std::numeric_limits<std::size_t>::max();
    for (const std::size_t bytes :
         {2 * unit() + 1, (std::size_t{1} << 32) + 1, most - unit(), most}) {
        EXPECT_THROW(buffer.resize(bytes), std::length_error) << "resize(" << bytes << ")";
        EXPECT_EQ(buffer.size(), unit()) << "after resize(" << bytes << ")";
    }
}

TEST_F(Growable, BeyondTheDeviceIsRefusedAndStaysAsItWas) {
    GrowableBuffer buffer(0, 5 * device_->total_memory());
    buffer.resize(unit());
    fill(buffer.base(), unit(), 5);
    // On an emulated device of 1 GiB: a size that needs more than 32 bits.
    EXPECT_THROW(buffer.resize(4 * device_->total_memory() + 2 * unit()), CudaError);
    EXPECT_EQ(buffer.size(), unit());
    EXPECT_TRUE(holds(buffer.base(), unit(), 5));
    buffer.resize(2 * unit());
    EXPECT_EQ(buffer.size(), 2 * unit());
}

}  // namespace
}  // namespace symm
