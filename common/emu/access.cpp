#include "common/emu/access.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "common/emu/address_space.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/simt/back_off.hpp"

namespace symm::emu {
namespace {

void* at(CUdeviceptr pointer) {
    return reinterpret_cast<void*>(pointer);
}

constexpr unsigned char kRead = CU_MEM_ACCESS_FLAGS_PROT_READ;
constexpr unsigned char kReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

unsigned char all_rights(const Mapping& mapping) {
    unsigned char rights = 0;
    for (const unsigned char one : mapping.rights) {
        rights |= one;
    }
    return rights;
}

unsigned char rights_of_those_at_work(const Emulator& e, const Mapping& mapping) {
    unsigned char rights = mapping.rights[kHost];
    bool anyone = false;
    for (int device = 0; device < e.configuration.devices; ++device) {
        if (e.devices[device].kernels.load(std::memory_order_relaxed) > 0) {
            rights |= mapping.rights[device];
            anyone = true;
        }
    }
    const bool copying = e.copies.load(std::memory_order_relaxed) > 0;
    return anyone && !copying ? rights : all_rights(mapping);
}

int protection_for(unsigned char rights) {
    return rights == 0 ? PROT_NONE : rights == kRead ? PROT_READ : PROT_READ | PROT_WRITE;
}

void protect(Emulator& e, CUdeviceptr base, Mapping& mapping) {
    const int protection = protection_for(rights_of_those_at_work(e, mapping));
    if (protection != mapping.protection.load(std::memory_order_relaxed) &&
        ::mprotect(at(base), mapping.size, protection) == 0) {
        mapping.protection.store(protection, std::memory_order_relaxed);
    }
}

// Keeps streams apart that change protections at the same moment, without ordering the kernels they
// run for ThreadSanitizer: relaxed, as is all that it guards.
class UnorderedLock {
public:
    UnorderedLock() {
        for (int round = 0; held().exchange(true, std::memory_order_relaxed); ++round) {
            simt::back_off(round);
        }
    }
    ~UnorderedLock() { held().store(false, std::memory_order_relaxed); }
    UnorderedLock(const UnorderedLock&) = delete;
    UnorderedLock& operator=(const UnorderedLock&) = delete;

private:
    static std::atomic<bool>& held() {
        static constinit std::atomic<bool> value{false};
        return value;
    }
};

void note_restricted(Emulator& e, Mapping& mapping) {
    const auto first = mapping.rights.begin();
    const bool restricted = std::any_of(first, first + e.configuration.devices,
                                        [&](unsigned char one) { return one != *first; });
    e.restricted += restricted ? 1 : 0;
    e.restricted -= mapping.restricted ? 1 : 0;
    mapping.restricted = restricted;
}

// Where in the table of rights a location stands; negative for one that cannot be.
int place_of(const CUmemLocation& location) {
    switch (location.type) {
        case CU_MEM_LOCATION_TYPE_DEVICE:
            return is_device(location.id) ? location.id : -1;
        case CU_MEM_LOCATION_TYPE_HOST:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
            return kHost;
        default:
            return -1;
    }
}

CUresult check_descriptor(const CUmemAccessDesc& descriptor, const Physical& physical) {
    const CUmemLocation& location = descriptor.location;
    const bool known_type = location.type >= CU_MEM_LOCATION_TYPE_DEVICE &&
                            location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    const bool known_flags = descriptor.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                             descriptor.flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                             descriptor.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (!known_type || !known_flags) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const int place = place_of(location);
    if (place < 0) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (place == kHost && physical.on_device()) {
        return CUDA_ERROR_NOT_SUPPORTED;  // an H200's memory is not in the host's address space
    }
    if (place != kHost && descriptor.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
        !can_reach(place, physical.owner())) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    return CUDA_SUCCESS;
}

RangeFound find_in_reservation(Emulator& e, CUdeviceptr pointer, std::size_t size, bool write) {
    RangeFound found{Range::kForbidden, -1};
    const CUdeviceptr end = pointer + size;
    for (CUdeviceptr next = pointer; next < end;) {
        const auto mapping = entry_at(e.mappings, next);
        if (mapping == e.mappings.end()) {
            return {Range::kForbidden, -1};
        }
        const unsigned char needed = write ? kReadWrite : kRead;
        if ((all_rights(mapping->second) & needed) != needed) {
            return {Range::kForbidden, -1};
        }
        if (found.owner < 0) {
            found = {Range::kDevice, mapping->second.physical->owner()};
        }
        next = mapping->first + mapping->second.size;
    }
    return found;
}

}  // namespace

bool can_reach(int device, int owner) {
    return device == owner || owner == kHost || emulator().configuration.peer_access;
}

RangeFound find_range(CUdeviceptr pointer, std::size_t size, bool write) {
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    if (pointer + size < pointer) {
        return {Range::kForbidden, -1};
    }
    if (entry_at(e.reservations, pointer) != e.reservations.end()) {
        return find_in_reservation(e, pointer, size, write);
    }
    const auto plain = entry_at(e.plain, pointer);
    if (plain == e.plain.end()) {
        return {};
    }
    const auto& [base, memory] = *plain;
    if (size > memory.size - (pointer - base)) {
        return {Range::kForbidden, -1};
    }
    if (memory.kind == PlainMemory::Kind::kPinnedHost) {
        return {Range::kHost, kHost};
    }
    return {Range::kDevice, memory.device};
}

WorkScope::WorkScope(int device_or_copy) : device_(device_or_copy) {
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    std::atomic<int>& counter = device_ == kCopy ? e.copies : e.devices[device_].kernels;
    counter.fetch_add(1, std::memory_order_relaxed);
    if (e.restricted > 0) {
        const UnorderedLock alone;
        for (auto& [base, mapping] : e.mappings) {
            if (mapping.restricted) {
                protect(e, base, mapping);
            }
        }
    }
}

WorkScope::~WorkScope() {
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    std::atomic<int>& counter = device_ == kCopy ? e.copies : e.devices[device_].kernels;
    counter.fetch_sub(1, std::memory_order_relaxed);
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc* descriptors,
                        size_t count) {
    SYMM_EMU_ENTER(cuMemSetAccess);
    if (descriptors == nullptr || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    const auto [first, last] = whole_mappings(e, pointer, size, Holes::kNone);
    if (first == last) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (auto one = first; one != last; ++one) {
        for (std::size_t i = 0; i < count; ++i) {
            SYMM_EMU_TRY(check_descriptor(descriptors[i], *one->second.physical));
        }
    }
    for (auto one = first; one != last; ++one) {
        auto& [base, mapping] = *one;
        for (std::size_t i = 0; i < count; ++i) {
            mapping.rights[place_of(descriptors[i].location)] =
                static_cast<unsigned char>(descriptors[i].flags);
        }
        note_restricted(e, mapping);
        protect(e, base, mapping);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr pointer) {
    SYMM_EMU_ENTER(cuMemGetAccess);
    if (flags == nullptr || location == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    const auto mapping = entry_at(e.mappings, pointer);
    if (mapping == e.mappings.end()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const int place = place_of(*location);
    if (place < 0) {
        return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_ERROR_INVALID_DEVICE
                                                             : CUDA_ERROR_INVALID_VALUE;
    }
    *flags = mapping->second.rights[place];
    return CUDA_SUCCESS;
}

}  // namespace symm::emu
