// The emulator's state, cuInit, and the calls that query devices.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "common/emu/emulator.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/kernels/launch.hpp"
#include "common/emu/memory/access.hpp"
#include "common/emu/streams/events.hpp"
#include "common/emu/streams/graphs.hpp"
#include "common/simt/pack.hpp"
#include "common/sys/usage_error.hpp"

namespace symm::emu {
Emulator& emulator() {
    static Emulator& kept = *new Emulator;
    return kept;
}

void cuInit(unsigned int flags) {
    const Changing e;
    if (!e->configured) {
        try {
            e->configuration = read_configuration();
        } catch (const UsageError& error) {
            say("{}", error.what());
            refuse(CUDA_ERROR_INVALID_VALUE);
        }
        e->configured = true;
        simt::torn_packs.store(e->configuration.torn_packs, std::memory_order_relaxed);
        std::ranges::for_each(e->configuration.failures, plan);
    }
    enter(index_of_function("cuInit"));
    refuse_if(flags != 0);
    refuse_if(e->configuration.devices == 0, CUDA_ERROR_NO_DEVICE);
    for (int i = 0; i < e->configuration.devices && !e->initialised; ++i) {
        e->devices[i].primary = std::make_unique<Context>(i);
    }
    if (!e->initialised) {
        e->initialised_by.emplace();
    }
    e->initialised.store(true, std::memory_order_release);
}

void cuDeviceGet(CUdevice* device, int ordinal) {
    refuse_if(device == nullptr);
    check_device(ordinal);
    *device = ordinal;
}

void cuDeviceGetCount(int* count) {
    refuse_if(count == nullptr);
    *count = emulator().configuration.devices;
}

void cuDeviceGetName(char* name, int length, CUdevice device) {
    refuse_if(name == nullptr || length <= 0);
    check_device(device);
    std::snprintf(name, static_cast<std::size_t>(length), "Emulated GPU");
}

void cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    refuse_if(uuid == nullptr);
    check_device(device);
    std::memset(uuid, 0, sizeof(*uuid));
    std::memcpy(uuid->bytes, "symm-emulated", 13);
    uuid->bytes[15] = static_cast<char>(device);
}

void cuDeviceTotalMem(size_t* bytes, CUdevice device) {
    refuse_if(bytes == nullptr);
    check_device(device);
    *bytes = emulator().configuration.memory;
}

// Only the attributes that this repository queries.
void cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    refuse_if(value == nullptr);
    check_device(device);
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            *value = kMaxBlock;
            break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            *value = emulator().configuration.multiprocessors;
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
            *value = kThreadsOfMultiprocessor;
            break;
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
            *value = 1;
            break;
        case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
            *value = emulator().configuration.multicast ? 1 : 0;
            break;
        case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
            *value = 0;
            break;
        default:
            refuse(CUDA_ERROR_INVALID_VALUE);
    }
}

void cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    refuse_if(can == nullptr);
    check_device(device);
    check_device(peer);
    *can = device != peer && can_reach(device, peer) ? 1 : 0;  // not a peer of itself
}

void cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                             CUdevice destination) {
    refuse_if(value == nullptr);
    check_device(source);
    check_device(destination);
    refuse_if(source == destination, CUDA_ERROR_INVALID_DEVICE);
    const int reachable = can_reach(source, destination) ? 1 : 0;
    switch (attribute) {
        case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
            *value = 0;
            break;
        case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
            *value = reachable;
            break;
        case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
            *value = emulator().configuration.peer_atomics ? reachable : 0;
            break;
        default:
            refuse(CUDA_ERROR_INVALID_VALUE);
    }
}

}  // namespace symm::emu
