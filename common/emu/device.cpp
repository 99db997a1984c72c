// The emulator's state, cuInit, and the calls that query devices.

#include <cstdio>
#include <cstring>

#include "common/emu/access.hpp"
#include "common/emu/contexts.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/graphs.hpp"
#include "common/emu/launch.hpp"
#include "common/emu/log.hpp"
#include "common/emu/streams.hpp"
#include "common/simt/pack.hpp"
#include "common/sys/usage_error.hpp"

namespace symm::emu {
namespace {

// The value of an attribute that this repository queries; -1 for any other.
int attribute_of(CUdevice_attribute attribute) {
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            return kMaxBlock;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            return emulator().configuration.multiprocessors;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
            return kThreadsOfMultiprocessor;
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
            return 1;
        case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
            return 0;
        default:
            return -1;
    }
}

}  // namespace

Emulator& emulator() {
    static Emulator& kept = *new Emulator;
    return kept;
}

bool is_device(int ordinal) {
    return ordinal >= 0 && ordinal < emulator().configuration.devices;
}

CUresult check_arguments(const void* answer, int device) {
    if (answer == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuInit(unsigned int flags) {
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    if (!e.configured) {
        try {
            e.configuration = read_configuration();
        } catch (const UsageError& error) {
            say("{}", error.what());
            return CUDA_ERROR_INVALID_VALUE;
        }
        e.configured = true;
        simt::torn_packs.store(e.configuration.torn_packs, std::memory_order_relaxed);
        for (const PlannedFailure& failure : e.configuration.failures) {
            // Counted from the start of the process; calls already made can no longer fail.
            if (const long left = failure.call - calls_made(failure.function); left > 0) {
                fail_call(failure.function, left, failure.result);
            }
        }
    }
    SYMM_EMU_ENTER(cuInit);
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (e.configuration.devices == 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    for (int i = 0; i < e.configuration.devices && !e.initialised; ++i) {
        e.devices[i].primary = std::make_unique<Context>(i);
    }
    e.initialised.store(true, std::memory_order_release);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    SYMM_EMU_ENTER(cuDeviceGet);
    SYMM_EMU_TRY(check_arguments(device, ordinal));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
    SYMM_EMU_ENTER(cuDeviceGetCount);
    if (count == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = emulator().configuration.devices;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
    SYMM_EMU_ENTER(cuDeviceGetName);
    SYMM_EMU_TRY(check_arguments(length > 0 ? name : nullptr, device));
    std::snprintf(name, static_cast<std::size_t>(length), "Emulated GPU");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    SYMM_EMU_ENTER(cuDeviceGetUuid);
    SYMM_EMU_TRY(check_arguments(uuid, device));
    std::memset(uuid, 0, sizeof(*uuid));
    std::memcpy(uuid->bytes, "symm-emulated", 13);
    uuid->bytes[15] = static_cast<char>(device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
    SYMM_EMU_ENTER(cuDeviceTotalMem);
    SYMM_EMU_TRY(check_arguments(bytes, device));
    *bytes = emulator().configuration.memory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    SYMM_EMU_ENTER(cuDeviceGetAttribute);
    SYMM_EMU_TRY(check_arguments(value, device));
    const int found = attribute_of(attribute);
    if (found < 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *value = found;
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    SYMM_EMU_ENTER(cuDeviceCanAccessPeer);
    SYMM_EMU_TRY(check_arguments(can, device));
    SYMM_EMU_TRY(check_arguments(can, peer));
    *can = device != peer && can_reach(device, peer) ? 1 : 0;  // not a peer of itself
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                 CUdevice destination) {
    SYMM_EMU_ENTER(cuDeviceGetP2PAttribute);
    SYMM_EMU_TRY(check_arguments(value, source));
    if (!is_device(destination) || source == destination) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const int reachable = can_reach(source, destination) ? 1 : 0;
    switch (attribute) {
        case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
            *value = 0;
            return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
            *value = reachable;
            return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
            *value = emulator().configuration.peer_atomics ? reachable : 0;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace symm::emu
