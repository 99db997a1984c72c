#include "common/emu/access.hpp"

#include <sys/mman.h>

#include <atomic>

#include "common/emu/address_space.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/simt/back_off.hpp"

namespace symm::emu {
namespace {

constexpr unsigned char kRead = CU_MEM_ACCESS_FLAGS_PROT_READ;
constexpr unsigned char kReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

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
    return anyone && !copying ? rights : mapping.all_rights();
}

void protect(const Emulator& e, CUdeviceptr base, Mapping& mapping) {
    const unsigned char rights = rights_of_those_at_work(e, mapping);
    const int protection = rights == 0       ? PROT_NONE
                           : rights == kRead ? PROT_READ
                                             : PROT_READ | PROT_WRITE;
    if (protection != mapping.protection.load(std::memory_order_relaxed) &&
        ::mprotect(at(base), mapping.size, protection) == 0) {
        mapping.protection.store(protection, std::memory_order_relaxed);
    }
}

// The index of a location in the table of rights.
CUresult find_place(const CUmemLocation& location, int& place) {
    switch (location.type) {
        case CU_MEM_LOCATION_TYPE_DEVICE:
            place = location.id;
            return is_device(place) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
        case CU_MEM_LOCATION_TYPE_HOST:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
            place = kHost;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult check_descriptor(const CUmemAccessDesc& descriptor, const Physical& physical) {
    if (descriptor.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && descriptor.flags != kRead &&
        descriptor.flags != kReadWrite) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int place = 0;
    SYMM_EMU_TRY(find_place(descriptor.location, place));
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
    const unsigned char needed = write ? kReadWrite : kRead;
    RangeFound found{Range::kForbidden};
    for (CUdeviceptr next = pointer; next < pointer + size;) {
        const auto mapping = entry_at(e.mappings, next);
        if (mapping == e.mappings.end() || (mapping->second.all_rights() & needed) != needed) {
            return {Range::kForbidden};
        }
        if (found.range == Range::kForbidden) {
            found = {Range::kKnown, mapping->second.physical->owner()};
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
        return {Range::kForbidden};
    }
    if (entry_at(e.reservations, pointer) != e.reservations.end()) {
        return find_in_reservation(e, pointer, size, write);
    }
    const auto plain = entry_at(e.plain, pointer);
    if (plain == e.plain.end()) {
        return {};
    }
    if (entry_at(e.plain, pointer, size) == e.plain.end()) {
        return {Range::kForbidden};
    }
    const PlainMemory& memory = plain->second;
    return {Range::kKnown, memory.on_host() ? kHost : memory.device};
}

WorkScope::WorkScope(std::atomic<int>& running) : running_(running) {
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    running_.fetch_add(1, std::memory_order_relaxed);
    // Only one thread sets protections at a time. The lock uses relaxed atomics, as does what it
    // guards: it must not order the kernels of two streams for ThreadSanitizer.
    static constinit std::atomic<bool> locked{false};
    for (int round = 0; locked.exchange(true, std::memory_order_relaxed); ++round) {
        simt::back_off(round);
    }
    for (auto& [base, mapping] : e.mappings) {
        protect(e, base, mapping);
    }
    locked.store(false, std::memory_order_relaxed);
}

WorkScope::~WorkScope() {
    running_.fetch_sub(1, std::memory_order_relaxed);
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
            int place = 0;
            SYMM_EMU_TRY(find_place(descriptors[i].location, place));
            mapping.rights[place] = static_cast<unsigned char>(descriptors[i].flags);
        }
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
    int place = 0;
    SYMM_EMU_TRY(find_place(*location, place));
    *flags = mapping->second.rights[place];
    return CUDA_SUCCESS;
}

}  // namespace symm::emu
