#include "common/cuda/device.hpp"

#include <array>
#include <stdexcept>

#include "common/cuda/check.hpp"

namespace symm {
namespace {

CUdevice find(int ordinal) {
    const int count = device_count();
    if (ordinal < 0 || ordinal >= count) {
        throw std::out_of_range(fmt::format(
            "there is no device {}: this machine has {}, numbered from 0", ordinal, count));
    }
    return device_handle(ordinal);
}

}  // namespace

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
    PrimaryContext retained{ordinal, find(ordinal)};
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

int Device::attribute(CUdevice_attribute attribute) const {
    int value = 0;
    cu_check(cuDeviceGetAttribute(&value, attribute, handle()),
             "cuDeviceGetAttribute({}, device={})", static_cast<int>(attribute), ordinal());
    return value;
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

CurrentContext::CurrentContext(CUcontext context) {
    cu_check(cuCtxPushCurrent(context), "cuCtxPushCurrent()");
}

CurrentContext::~CurrentContext() {
    CUcontext popped = nullptr;
    cu_check_nothrow(cuCtxPopCurrent(&popped), "cuCtxPopCurrent()");
}

}  // namespace symm
