// cuInit and the questions about devices.

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "common/emu/access.hpp"
#include "common/emu/contexts.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/kernels.hpp"
#include "common/emu/log.hpp"
#include "common/simt/torn_pack.hpp"
#include "common/sys/usage_error.hpp"

namespace symm::emu {
namespace {

constexpr std::string_view kName = "Emulated GPU";

// Of CUDA 13's header; older ones do not name it.
constexpr int kHostNumaVmmSupported = 141;

// The value of an attribute that somebody here asks for, or -1, which none has.
int attribute_of(int attribute) {
    switch (attribute) {
        // A kernel's shape
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            return kMaxBlock;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            return emulator().configuration.multiprocessors;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
            return kThreadsOfMultiprocessor;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
            return 32;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
            return 48 * 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            return static_cast<int>(kMaxSharedBytes);
        // What an H200 can do, and this too
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            return 9;
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
        case kHostNumaVmmSupported:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
            return 1;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
            return 0;
        default:
            return -1;
    }
}

}  // namespace

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
            // Counted from the process's start; what is past cannot fail any more.
            if (const long left = failure.call - calls_made(failure.function); left > 0) {
                fail_call(failure.function, left, failure.result);
            }
        }
    }
    SYMM_EMU_TRY(enter(index_of_function("cuInit"), Needs::kNothing));
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (e.configuration.devices == 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    for (int i = 0; i < e.configuration.devices && !e.initialised; ++i) {
        e.devices[i].primary = std::make_unique<Context>(i, true);
    }
    e.initialised.store(true, std::memory_order_release);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    SYMM_EMU_ENTER(cuDeviceGet);
    if (device == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(ordinal)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
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
    if (name == nullptr || length <= 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const std::size_t copied = std::min(kName.size(), static_cast<std::size_t>(length) - 1);
    std::memcpy(name, kName.data(), copied);
    name[copied] = '\0';
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    SYMM_EMU_ENTER(cuDeviceGetUuid);
    if (uuid == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    std::memset(uuid, 0, sizeof(*uuid));
    std::memcpy(uuid->bytes, "symm-emulated", 13);
    uuid->bytes[15] = static_cast<char>(device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
    SYMM_EMU_ENTER(cuDeviceTotalMem);
    if (bytes == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *bytes = emulator().configuration.memory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    SYMM_EMU_ENTER(cuDeviceGetAttribute);
    if (value == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const int found = attribute_of(attribute);
    if (found < 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *value = found;
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    SYMM_EMU_ENTER(cuDeviceCanAccessPeer);
    if (can == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(device) || !is_device(peer)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *can = device != peer && can_reach(device, peer) ? 1 : 0;  // not a peer of itself
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                 CUdevice destination) {
    SYMM_EMU_ENTER(cuDeviceGetP2PAttribute);
    if (value == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(source) || !is_device(destination) || source == destination) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const int reachable = can_reach(source, destination) ? 1 : 0;
    switch (attribute) {
        case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
            *value = 0;
            return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
        case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
            *value = reachable;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace symm::emu
