#include "common/cuda/device.hpp"

#include <array>

#include "common/cuda/check.hpp"

namespace symm {

int device_count() {
    int count = 0;
    cu_check(cuInit(0), "cuInit(0)");
    cu_check(cuDeviceGetCount(&count), "cuDeviceGetCount()");
    return count;
}

CUdevice device_handle(int ordinal) {
    CUdevice device = 0;
    cu_check(cuDeviceGet(&device, ordinal), "cuDeviceGet({})", ordinal);
    return device;
}

int device_attribute(int ordinal, CUdevice_attribute attribute) {
    int value = 0;
    cu_check(cuDeviceGetAttribute(&value, attribute, device_handle(ordinal)),
             "cuDeviceGetAttribute({}, device={})", static_cast<int>(attribute), ordinal);
    return value;
}

CUuuid device_uuid(int ordinal) {
    CUuuid uuid{};
    cu_check(cuDeviceGetUuid(&uuid, device_handle(ordinal)), "cuDeviceGetUuid(device={})", ordinal);
    return uuid;
}

bool can_access(int device, int owner) {
    if (device == owner) {
        return true;
    }
    int can = 0;
    cu_check(cuDeviceCanAccessPeer(&can, device_handle(device), device_handle(owner)),
             "cuDeviceCanAccessPeer(device={}, peer={})", device, owner);
    return can != 0;
}

Device::Device(int ordinal) {
    cu_check(cuInit(0), "cuInit(0)");
    PrimaryContext retained{ordinal, device_handle(ordinal)};
    cu_check(cuDevicePrimaryCtxRetain(&retained.context, retained.device),
             "cuDevicePrimaryCtxRetain(device={})", ordinal);
    value_ = retained;
    make_current();
}

void Device::give_back(const PrimaryContext& retained) {
    cu_check(cuDevicePrimaryCtxRelease(retained.device), "cuDevicePrimaryCtxRelease(device={})",
             retained.ordinal);
}

void Device::make_current() const {
    cu_check(cuCtxSetCurrent(context()), "cuCtxSetCurrent(device={})", ordinal());
}

CurrentContext::CurrentContext() {
    cu_check(cuCtxGetCurrent(&callers_), "cuCtxGetCurrent()");
}

CurrentContext::CurrentContext(CUcontext context) : CurrentContext() {
    changed_ = callers_ != context;
    if (changed_) {
        cu_check(cuCtxSetCurrent(context), "cuCtxSetCurrent()");
    }
}

CurrentContext::~CurrentContext() {
    if (changed_) {
        cuCtxSetCurrent(callers_);  // a destructor cannot report its error
    }
}

std::string Device::name() const {
    std::array<char, 256> text{};
    cu_check(cuDeviceGetName(text.data(), static_cast<int>(text.size()), handle()),
             "cuDeviceGetName(device={})", ordinal());
    return text.data();
}

std::size_t Device::total_memory() const {
    std::size_t bytes = 0;
    cu_check(cuDeviceTotalMem(&bytes, handle()), "cuDeviceTotalMem(device={})", ordinal());
    return bytes;
}

}  // namespace symm
