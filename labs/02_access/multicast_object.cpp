#include "labs/02_access/multicast_object.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/sys/environment.hpp"

namespace symm {
namespace {

CUmulticastObjectProp object_of(int devices, std::size_t bytes) {
    return {static_cast<unsigned>(devices), bytes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0};
}

}  // namespace

std::size_t MulticastObject::granularity(int devices) {
    const CUmulticastObjectProp object = object_of(devices, 1);
    std::size_t unit = 0;
    cu_check(cuMulticastGetGranularity(&unit, &object, CU_MULTICAST_GRANULARITY_MINIMUM),
             "cuMulticastGetGranularity({} devices)", devices);
    return unit;
}

MulticastObject MulticastObject::create(int devices, std::size_t bytes) {
    const CUmulticastObjectProp object = object_of(devices, bytes);
    CUmemGenericAllocationHandle handle = 0;
    cu_check(cuMulticastCreate(&handle, &object), "cuMulticastCreate({} devices, {} bytes)",
             devices, bytes);
    return MulticastObject(PhysicalMemory::adopt(handle, bytes));
}

void MulticastObject::add(int device) const {
    const CUresult result = cuMulticastAddDevice(handle_.handle(), device);
    cu_check(result, "cuMulticastAddDevice(device {}{})", device,
             result == CUDA_ERROR_INVALID_VALUE ? "; each device is added once" : "");
}

MulticastBinding MulticastObject::bind(int device, const PhysicalMemory& memory) const {
    cu_check(cuMulticastBindMem(handle_.handle(), 0, memory.handle(), 0, memory.size(), 0),
             "cuMulticastBindMem({} bytes of device {})", memory.size(), device);
    return MulticastBinding({handle_.handle(), device, memory.size()});
}

void MulticastBinding::give_back(const BoundMemory& bound) {
    cu_check(cuMulticastUnbind(bound.object, bound.device, 0, bound.bytes),
             "cuMulticastUnbind(device {}, {} bytes)", bound.device, bound.bytes);
}

void require_multicast(int device) {
    if (!is_emulated() && env::number("SYMM_MULTICAST") == 0) {
        throw std::runtime_error(
            "multicast is for emulated GPUs (SYMM_DRIVER=emulated): on real ones it can disable "
            "GPUs that others use, and we have not tried it. If all GPUs of this machine are "
            "yours, set SYMM_MULTICAST=1");
    }
    int has = 0;
    cu_check(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, device),
             "cuDeviceGetAttribute(MULTICAST_SUPPORTED, device {})", device);
    if (has == 0) {
        throw std::runtime_error(fmt::format(
            "device {} has no multicast objects: that needs GPUs behind an NVSwitch", device));
    }
}

}  // namespace symm
