// Multicast objects of the emulated driver: what the CUDA Driver API manual says of them. No case
// was compared with a real driver.

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "common/emu/tests/support.hpp"
#include "common/simt/multimem.hpp"
#include "common/sys/descriptor.hpp"

namespace symm::emu {
namespace {

constexpr auto kPosix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr unsigned kTeam = 3;  ///< Devices.

CUmulticastObjectProp object_of(unsigned devices, std::size_t size,
                                unsigned long long types = kPosix) {
    return {devices, size, types, 0};
}

/// A multicast object, released at the end of the case.
struct Object {
    explicit Object(std::size_t size = kBlock, unsigned devices = kTeam) {
        const CUmulticastObjectProp properties = object_of(devices, size);
        EXPECT_OK(cuMulticastCreate(&handle, &properties));
    }
    ~Object() { EXPECT_OK(cuMemRelease(handle)); }
    Object(const Object&) = delete;
    void add_all() const {
        for (int device = 0; device < static_cast<int>(kTeam); ++device) {
            EXPECT_OK(cuMulticastAddDevice(handle, device));
        }
    }
    CUmemGenericAllocationHandle handle = 0;
};

/// An object with a block of each device behind it, which all devices may use.
struct Bound {
    Bound() : range(kBlock) {
        object.add_all();
        for (int device = 0; device < static_cast<int>(kTeam); ++device) {
            const auto& memory =
                memories.emplace_back(std::make_unique<Memory>(memory_of(device), kBlock));
            auto& at = ranges.emplace_back(std::make_unique<Range>(kBlock));
            at->map(*memory, 0, {0, 1, 2});
            EXPECT_OK(cuMulticastBindMem(object.handle, 0, memory->handle(), 0, kBlock, 0));
        }
        EXPECT_OK(cuMemMap(range.base(), kBlock, 0, object.handle, 0));
        const CUmemAccessDesc all[] = {access_for(0), access_for(1), access_for(2)};
        EXPECT_OK(cuMemSetAccess(range.base(), kBlock, all, kTeam));
    }
    ~Bound() {
        EXPECT_OK(cuMemUnmap(range.base(), kBlock));
        for (int device = 0; device < static_cast<int>(kTeam); ++device) {
            EXPECT_OK(cuMulticastUnbind(object.handle, device, 0, kBlock));
        }
    }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(range.base());
    }
    CUdeviceptr of(std::size_t device) const { return ranges.at(device)->base(); }

    Object object;
    std::vector<std::unique_ptr<Memory>> memories;
    std::vector<std::unique_ptr<Range>> ranges;
    Range range;
};

class Multicast : public EmulatedDriver {};

TEST_F(Multicast, IsMadeOfWholeGranules) {
    std::size_t unit = 0;
    CUmulticastObjectProp properties = object_of(kTeam, kBlock);
    for (const auto option :
         {CU_MULTICAST_GRANULARITY_MINIMUM, CU_MULTICAST_GRANULARITY_RECOMMENDED}) {
        ASSERT_OK(cuMulticastGetGranularity(&unit, &properties, option));
        EXPECT_EQ(unit, kBlock);
    }
    EXPECT_INVALID(
        cuMulticastGetGranularity(nullptr, &properties, CU_MULTICAST_GRANULARITY_MINIMUM));
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_INVALID(cuMulticastCreate(nullptr, &properties));
    EXPECT_INVALID(cuMulticastCreate(&handle, nullptr));
    properties.size = kBlock / 2;
    EXPECT_INVALID(cuMulticastCreate(&handle, &properties));
    properties = object_of(0, kBlock);
    EXPECT_INVALID(cuMulticastCreate(&handle, &properties));
    properties = object_of(kTeam, kBlock);
    properties.flags = 1;
    EXPECT_INVALID(cuMulticastCreate(&handle, &properties));
}

TEST_F(Multicast, HasItsDevicesForLife) {
    const Object object;
    EXPECT_RESULT(cuMulticastAddDevice(object.handle, kNoDevice), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_INVALID(cuMulticastAddDevice(object.handle + 1, 0));
    EXPECT_OK(cuMulticastAddDevice(object.handle, 0));
    EXPECT_INVALID(cuMulticastAddDevice(object.handle, 0));
    EXPECT_OK(cuMulticastAddDevice(object.handle, 1));
    EXPECT_OK(cuMulticastAddDevice(object.handle, 3));
    EXPECT_INVALID(cuMulticastAddDevice(object.handle, 2));  // a fourth of three
    Memory memory(memory_of(2), kBlock);
    EXPECT_RESULT(cuMulticastBindMem(object.handle, 0, memory.handle(), 0, kBlock, 0),
                  CUDA_ERROR_INVALID_DEVICE);
    const Memory plain(1);
    EXPECT_INVALID(cuMulticastAddDevice(plain.handle(), 0));  // no object
}

TEST_F(Multicast, DISABLED_BindsAndMapsOnlyOnceAllDevicesAreThere) {
    const Object object;
    const Memory memory(1);
    Range range(kBlock);
    EXPECT_OK(cuMulticastAddDevice(object.handle, 0));
    EXPECT_OK(cuMulticastAddDevice(object.handle, 1));
    // Of a real driver these would wait for ever.
    EXPECT_RESULT(cuMulticastBindMem(object.handle, 0, memory.handle(), 0, kBlock, 0),
                  CUDA_ERROR_TIMEOUT);
    EXPECT_RESULT(cuMemMap(range.base(), kBlock, 0, object.handle, 0), CUDA_ERROR_TIMEOUT);
    std::thread other([&] {
        ::usleep(50'000);
        EXPECT_OK(cuMulticastAddDevice(object.handle, 2));
    });
    EXPECT_OK(cuMulticastBindMem(object.handle, 0, memory.handle(), 0, kBlock, 0));
    other.join();
    EXPECT_OK(cuMulticastUnbind(object.handle, 0, 0, kBlock));
}

TEST_F(Multicast, RefusesWhatIsBoundWrongly) {
    const Object object(2 * kBlock);
    object.add_all();
    const Memory memory(2), small(1);
    const auto bind = [&](std::size_t offset, const Memory& of, std::size_t memory_offset,
                          std::size_t size, unsigned long long flags = 0) {
        return cuMulticastBindMem(object.handle, offset, of.handle(), memory_offset, size, flags);
    };
    EXPECT_INVALID(bind(0, memory, 0, kBlock, 1));
    EXPECT_INVALID(bind(0, memory, 0, 0));
    EXPECT_INVALID(bind(0, memory, 0, kBlock / 2));
    EXPECT_INVALID(bind(kBlock / 2, memory, 0, kBlock));
    EXPECT_INVALID(bind(0, memory, kBlock / 2, kBlock));
    EXPECT_INVALID(bind(0, small, 0, 2 * kBlock));        // beyond the memory
    EXPECT_INVALID(bind(kBlock, memory, 0, 2 * kBlock));  // beyond the object
    EXPECT_INVALID(bind(0, memory, kBlock, 2 * kBlock));
    const Memory unshared(memory_of(0, CU_MEM_HANDLE_TYPE_NONE), kBlock);
    EXPECT_INVALID(bind(0, unshared, 0, kBlock));  // the object can be shared
    EXPECT_INVALID(cuMulticastBindMem(object.handle, 0, object.handle, 0, kBlock, 0));
    EXPECT_OK(bind(kBlock, memory, 0, kBlock));
    EXPECT_INVALID(bind(kBlock, small, 0, kBlock));  // device 0 has memory there
    EXPECT_INVALID(cuMulticastUnbind(object.handle, 0, 0, kBlock));
    EXPECT_INVALID(cuMulticastUnbind(object.handle, 1, kBlock, kBlock));
    EXPECT_OK(cuMulticastUnbind(object.handle, 0, kBlock, kBlock));
    Range range(2 * kBlock);
    range.map(memory, 0, {0});
    EXPECT_INVALID(cuMulticastBindAddr(object.handle, 0, range.base() + kBlock, 2 * kBlock, 0));
    EXPECT_OK(cuMulticastBindAddr(object.handle, 0, range.base() + kBlock, kBlock, 0));
    EXPECT_OK(cuMulticastUnbind(object.handle, 0, 0, kBlock));
}

TEST_F(Multicast, KeepsWhatIsBoundToIt) {
    {
        const Object object;
        object.add_all();
        {
            const Memory memory(1);
            EXPECT_OK(cuMulticastBindMem(object.handle, 0, memory.handle(), 0, kBlock, 0));
        }
        EXPECT_EQ(inventory()["physical bytes"], kBlock);
    }
    EXPECT_EQ(inventory()["physical bytes"], 0u);  // the object was released
}

TEST_F(Multicast, AddsUpAndStoresOnAllDevices) {
    const Bound bound;
    for (unsigned device = 0; device < kTeam; ++device) {
        const float values[] = {1.0F + static_cast<float>(device), 2, 3, -4};
        ASSERT_OK(cuMemcpyHtoD(bound.of(device), values, sizeof(values)));
    }
    ASSERT_OK(run(1, 1, [&](const simt::ThreadBlock& block) {
        auto* const packs = bound.as<simt::Pack16>();
        const simt::Pack16 sum = simt::load_reduce<float, simt::SwitchOp::kAdd>(block, packs);
        simt::store_to_all(block, packs + 1, sum);
        simt::add_to_all(block, bound.as<std::uint32_t>() + 16, 5);
    }));
    ASSERT_OK(cuCtxSynchronize());
    for (unsigned device = 0; device < kTeam; ++device) {
        float sums[4] = {};
        std::uint32_t word = 0;
        ASSERT_OK(cuMemcpyDtoH(sums, bound.of(device) + 16, sizeof(sums)));
        ASSERT_OK(cuMemcpyDtoH(&word, bound.of(device) + 64, sizeof(word)));
        EXPECT_EQ(std::vector<float>(sums, sums + 4), (std::vector<float>{6, 6, 9, -12}));
        EXPECT_EQ(word, 5u);
    }
}

TEST_F(Multicast, IsNothingToCopyOrToLoadPlainly) {
    const Bound bound;
    char byte = 1;
    EXPECT_INVALID(cuMemcpyHtoD(bound.range.base(), &byte, 1));
    EXPECT_INVALID(cuMemcpyDtoH(&byte, bound.range.base(), 1));
    const CUmemAccessDesc host{{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_RESULT(cuMemSetAccess(bound.range.base(), kBlock, &host, 1), CUDA_ERROR_NOT_SUPPORTED);
    const CUmemAccessDesc outsider = access_for(3);
    EXPECT_RESULT(cuMemSetAccess(bound.range.base(), kBlock, &outsider, 1),
                  CUDA_ERROR_INVALID_DEVICE);
    CUmemAllocationProp properties{};
    EXPECT_INVALID(cuMemGetAllocationPropertiesFromHandle(&properties, bound.object.handle));
}

TEST_F(Multicast, DISABLED_FaultsForAPlainLoad) {
    const Bound bound;
    ASSERT_OK(run_first([&] { (void)*bound.as<volatile int>(); }));
    EXPECT_RESULT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    ::_exit(HasFailure() ? 1 : 0);  // the context is lost
}

TEST_F(Multicast, DISABLED_FaultsWhereADeviceHasBoundNothing) {
    const Object object;
    object.add_all();
    const Memory memory(1);
    EXPECT_OK(cuMulticastBindMem(object.handle, 0, memory.handle(), 0, kBlock, 0));
    Range range(kBlock);
    EXPECT_OK(cuMemMap(range.base(), kBlock, 0, object.handle, 0));
    EXPECT_OK(give_access(range.base(), kBlock));
    ASSERT_OK(run(1, 1, [&](const simt::ThreadBlock& block) {
        simt::add_to_all(block, reinterpret_cast<std::uint32_t*>(range.base()), 1);
    }));
    EXPECT_RESULT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    ::_exit(HasFailure() ? 1 : 0);
}

TEST_F(Multicast, DISABLED_FaultsForAStoreWithTheRightToLoad) {
    const Bound bound;
    const CUmemAccessDesc reader = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    CU_MEM_ACCESS_FLAGS_PROT_READ};
    ASSERT_OK(cuMemSetAccess(bound.range.base(), kBlock, &reader, 1));
    const auto sum = [&](const simt::ThreadBlock& block) {
        simt::load_reduce<float, simt::SwitchOp::kAdd>(block, bound.as<simt::Pack16>());
    };
    ASSERT_OK(run(1, 1, sum));
    ASSERT_OK(cuCtxSynchronize());
    ASSERT_OK(run(1, 1, [&](const simt::ThreadBlock& block) {
        simt::add_to_all(block, bound.as<std::uint32_t>(), 1);
    }));
    EXPECT_RESULT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    ::_exit(HasFailure() ? 1 : 0);
}

// Of memory of two blocks only the first is mapped, and the second is bound.
TEST_F(Multicast, ReachesWhatIsBoundBehindAMapping) {
    const Object object;
    object.add_all();
    std::vector<std::unique_ptr<Memory>> memories;
    for (int device = 0; device < static_cast<int>(kTeam); ++device) {
        const auto& memory =
            memories.emplace_back(std::make_unique<Memory>(memory_of(device), 2 * kBlock));
        ASSERT_OK(cuMulticastBindMem(object.handle, 0, memory->handle(), kBlock, kBlock, 0));
    }
    Range all(kBlock), first(kBlock), whole(2 * kBlock);
    ASSERT_OK(cuMemMap(first.base(), kBlock, 0, memories[1]->handle(), 0));
    ASSERT_OK(cuMemMap(all.base(), kBlock, 0, object.handle, 0));
    ASSERT_OK(give_access(all.base(), kBlock));
    ASSERT_OK(run(1, 1, [&](const simt::ThreadBlock& block) {
        simt::add_to_all(block, reinterpret_cast<std::uint32_t*>(all.base()), 9);
    }));
    ASSERT_OK(cuCtxSynchronize());
    EXPECT_OK(cuMemUnmap(first.base(), kBlock));
    EXPECT_OK(cuMemUnmap(all.base(), kBlock));
    whole.map(*memories[1], 0, {0, 1, 2});
    std::uint32_t words[2] = {};
    ASSERT_OK(cuMemcpyDtoH(&words[0], whole.base(), sizeof(words[0])));
    ASSERT_OK(cuMemcpyDtoH(&words[1], whole.base() + kBlock, sizeof(words[1])));
    EXPECT_EQ(words[0], 0u);
    EXPECT_EQ(words[1], 9u);
}

CUmemGenericAllocationHandle imported(const char* file) {
    const UniqueFd fd(::open(std::getenv(file), O_RDWR | O_CLOEXEC));
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_OK(cuMemImportFromShareableHandle(
        &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd.get())), kPosix));
    return handle;
}

// In a process of its own, which finds the object in the file TEAM, and in the file ONE the memory
// of a device, to which it has no rights.
TEST_F(Multicast, DISABLED_IsReachedByAnotherProcess) {
    const CUmemGenericAllocationHandle handle = imported("TEAM"), one = imported("ONE");
    Range range(2 * kBlock), closed(2 * kBlock);
    ASSERT_OK(cuMemMap(closed.base(), 2 * kBlock, 0, one, 0));
    ASSERT_OK(cuMemMap(range.base(), 2 * kBlock, 0, handle, 0));
    ASSERT_OK(give_access(range.base(), 2 * kBlock));
    ASSERT_OK(run(1, 1, [&](const simt::ThreadBlock& block) {
        for (const std::size_t part : {std::size_t{0}, kBlock}) {
            simt::add_to_all(block, reinterpret_cast<std::uint32_t*>(range.base() + part), 7);
        }
    }));
    ASSERT_OK(cuCtxSynchronize());
    EXPECT_OK(cuMemUnmap(range.base(), 2 * kBlock));
    EXPECT_OK(cuMemUnmap(closed.base(), 2 * kBlock));
    EXPECT_OK(cuMemRelease(handle));
    EXPECT_OK(cuMemRelease(one));
}

// Each device's memory is bound in two parts, of which this one has the addresses.
TEST_F(Multicast, TravelsToAnotherProcess) {
    const Object object(2 * kBlock);
    object.add_all();
    std::vector<std::unique_ptr<Memory>> memories;
    std::vector<std::unique_ptr<Range>> ranges;
    for (int device = 0; device < static_cast<int>(kTeam); ++device) {
        const auto& memory =
            memories.emplace_back(std::make_unique<Memory>(memory_of(device), 2 * kBlock));
        ranges.emplace_back(std::make_unique<Range>(2 * kBlock))->map(*memory, 0, {0, 1, 2});
        for (const std::size_t part : {std::size_t{0}, kBlock}) {
            ASSERT_OK(cuMulticastBindMem(object.handle, part, memory->handle(), part, kBlock, 0));
        }
    }
    int team = -1, one = -1;
    ASSERT_OK(cuMemExportToShareableHandle(&team, object.handle, kPosix, 0));
    ASSERT_OK(cuMemExportToShareableHandle(&one, memories[1]->handle(), kPosix, 0));
    const std::string files = "=/proc/" + std::to_string(::getpid()) + "/fd/";
    expect_passes("Multicast.DISABLED_IsReachedByAnotherProcess",
                  "TEAM" + files + std::to_string(team) + " ONE" + files + std::to_string(one));
    ::close(team);
    ::close(one);
    for (const auto& range : ranges) {
        for (const std::size_t part : {std::size_t{0}, kBlock}) {
            std::uint32_t word = 0;
            ASSERT_OK(cuMemcpyDtoH(&word, range->base() + part, sizeof(word)));
            EXPECT_EQ(word, 7u);
        }
    }
}

TEST_F(Multicast, DISABLED_IsNotThereWithoutTheVariable) {
    CUmemGenericAllocationHandle handle = 0;
    const CUmulticastObjectProp properties = object_of(kTeam, kBlock);
    EXPECT_RESULT(cuMulticastCreate(&handle, &properties), CUDA_ERROR_NOT_SUPPORTED);
}

TEST(MulticastObjects, WaitForAllTheirDevices) {
    expect_passes("Multicast.DISABLED_BindsAndMapsOnlyOnceAllDevicesAreThere", "SYMM_TIMEOUT=0.3");
}
TEST(MulticastObjects, Fault) {
    expect_passes("Multicast.DISABLED_FaultsForAPlainLoad");
    expect_passes("Multicast.DISABLED_FaultsWhereADeviceHasBoundNothing");
    expect_passes("Multicast.DISABLED_FaultsForAStoreWithTheRightToLoad");
}
TEST(MulticastObjects, AreNotThereWithoutTheVariable) {
    expect_passes("Multicast.DISABLED_IsNotThereWithoutTheVariable", "SYMM_EMU_MULTICAST=0");
}

}  // namespace
}  // namespace symm::emu
