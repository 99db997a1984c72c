#pragma once
/// \file
/// Shared by the tests of the emulated driver. They call symm::emu itself, not the forwarders.

#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/emu/emulated_driver.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/inventory.hpp"
#include "common/emu/launch.hpp"
#include "common/tests/run_program.hpp"

namespace symm::emu {

inline constexpr std::size_t kBlock = std::size_t{2} << 20;  ///< The granularity.
inline constexpr auto kReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

/// Queues a kernel on the default stream.
inline CUresult run(unsigned blocks, unsigned threads,
                    std::function<void(const simt::ThreadBlock&)> body) {
    return launch_kernel(nullptr, {"test kernel", dim3(blocks), dim3(threads), 0, std::move(body)});
}

/// Before a test: cuInit, and device 0's primary context made current. After it: nothing is left.
class EmulatedDriver : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(emu::cuInit(0), CUDA_SUCCESS);
        before_ = inventory();
        ASSERT_EQ(emu::cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
        ASSERT_EQ(emu::cuCtxSetCurrent(context_), CUDA_SUCCESS);
    }
    void TearDown() override {
        clear_failures();
        EXPECT_EQ(emu::cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
        EXPECT_EQ(emu::cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
        EXPECT_EQ(inventory(), before_);
    }
    CUcontext context_ = nullptr;

private:
    Inventory before_;
};

/// Assigns the members one by one: in newer headers `id` is in a union.
inline CUmemLocation location(CUmemLocationType type, int id) {
    CUmemLocation place{};
    place.type = type;
    place.id = id;
    return place;
}

inline CUmemAllocationProp device_memory(int device = 0, unsigned handle_types = 1) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = location(CU_MEM_LOCATION_TYPE_DEVICE, device);
    properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handle_types);
    return properties;
}

inline CUmemAllocationProp host_memory() {
    CUmemAllocationProp properties = device_memory();
    properties.location = location(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
    return properties;
}

inline CUmemAccessDesc access_of(int device, CUmemAccess_flags flags) {
    return {location(CU_MEM_LOCATION_TYPE_DEVICE, device), flags};
}

/// Reserved, mapped memory; unmapped, freed and released by the destructor.
struct Mapped {
    explicit Mapped(std::size_t bytes, CUmemAllocationProp properties = device_memory())
        : size(bytes) {
        EXPECT_EQ(emu::cuMemCreate(&handle, size, &properties, 0), CUDA_SUCCESS);
        EXPECT_EQ(emu::cuMemAddressReserve(&pointer, size, 0, 0, 0), CUDA_SUCCESS);
        EXPECT_EQ(emu::cuMemMap(pointer, size, 0, handle, 0), CUDA_SUCCESS);
    }
    ~Mapped() {
        EXPECT_EQ(emu::cuMemUnmap(pointer, size), CUDA_SUCCESS);
        EXPECT_EQ(emu::cuMemAddressFree(pointer, size), CUDA_SUCCESS);
        EXPECT_EQ(emu::cuMemRelease(handle), CUDA_SUCCESS);
    }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;

    CUresult allow(std::vector<CUmemAccessDesc> descriptors) {
        return emu::cuMemSetAccess(pointer, size, descriptors.data(), descriptors.size());
    }
    /// Read and write for the first `devices` devices.
    CUresult allow_devices(int devices) {
        std::vector<CUmemAccessDesc> all;
        for (int i = 0; i < devices; ++i) {
            all.push_back(access_of(i, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        }
        return allow(all);
    }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(pointer);
    }

    std::size_t size;
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr pointer = 0;
};

}  // namespace symm::emu
