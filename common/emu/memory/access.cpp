#include "common/emu/memory/access.hpp"

#include <sys/mman.h>

#include <atomic>

#include "common/emu/memory/address_space.hpp"
#include "common/emu/memory/multicast.hpp"
#include "common/simt/back_off.hpp"

namespace symm::emu {
namespace {

constexpr unsigned char kRead = CU_MEM_ACCESS_FLAGS_PROT_READ;
constexpr unsigned char kReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

// A device needs no right to a mapping of memory that it reaches through a multicast object.
unsigned char rights_of_those_at_work(const Emulator& e, const Mapping& mapping) {
    const unsigned char through_object = mapping.physical->bindings > 0 ? kReadWrite : 0;
    unsigned char rights = mapping.rights[kHost];
    bool anyone = false;
    for (int device = 0; device < e.configuration.devices; ++device) {
        if (e.devices[device].kernels.load(std::memory_order_relaxed) > 0) {
            rights |= mapping.rights[device] | through_object;
            anyone = true;
        }
    }
    const bool copying = e.copies.load(std::memory_order_relaxed) > 0;
    return anyone && !copying ? rights : mapping.all_rights();
}

void protect(const Emulator& e, CUdeviceptr base, Mapping& mapping) {
    if (mapping.physical->team != nullptr) {
        return;  // a plain access of a multicast address always faults
    }
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
int find_place(const CUmemLocation& location) {
    switch (location.type) {
        case CU_MEM_LOCATION_TYPE_DEVICE:
            check_device(location.id);
            return location.id;
        case CU_MEM_LOCATION_TYPE_HOST:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
            return kHost;
        default:
            refuse(CUDA_ERROR_INVALID_VALUE);
    }
}

void check_descriptor(const CUmemAccessDesc& descriptor, const Physical& physical) {
    const bool none = descriptor.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
    refuse_if(!none && descriptor.flags != kRead && descriptor.flags != kReadWrite);
    const int place = find_place(descriptor.location);
    if (physical.team != nullptr) {
        refuse_if(place == kHost, CUDA_ERROR_NOT_SUPPORTED);
        return refuse_if(!none && !physical.team->has(place), CUDA_ERROR_INVALID_DEVICE);
    }
    // An H200's memory is not in the host's address space.
    refuse_if(place == kHost && physical.on_device(), CUDA_ERROR_NOT_SUPPORTED);
    refuse_if(place != kHost && !none && !can_reach(place, physical.owner()),
              CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace

bool can_reach(int device, int owner) {
    return device == owner || owner == kHost || emulator().configuration.peer_access;
}

std::optional<int> find_owner(CUdeviceptr pointer, std::size_t size, bool write) {
    const Reading e;
    refuse_if(pointer + size < pointer);
    if (entry_at(e->reservations, pointer) != e->reservations.end()) {
        const unsigned char needed = write ? kReadWrite : kRead;
        for (CUdeviceptr next = pointer; next < pointer + size;) {
            const auto mapping = entry_at(e->mappings, next);
            refuse_if(mapping == e->mappings.end() ||
                      (mapping->second.all_rights() & needed) != needed);
            next = mapping->first + mapping->second.size;
        }
        const auto first = entry_at(e->mappings, pointer);
        refuse_if(first == e->mappings.end() || first->second.physical->team != nullptr);
        return first->second.physical->owner();
    }
    const auto plain = entry_at(e->plain, pointer);
    if (plain == e->plain.end()) {
        return std::nullopt;
    }
    refuse_if(entry_at(e->plain, pointer, size) == e->plain.end());
    return plain->second.on_host() ? kHost : plain->second.device;
}

WorkScope::WorkScope(std::atomic<int>& running) : running_(running) {
    const Reading e;
    running_.fetch_add(1, std::memory_order_relaxed);
    // Only one thread sets protections at a time. The lock uses relaxed atomics, as does what it
    // guards: it must not order the kernels of two streams for ThreadSanitizer.
    static constinit std::atomic<bool> locked{false};
    for (int round = 0; locked.exchange(true, std::memory_order_relaxed); ++round) {
        simt::back_off(round);
    }
    for (auto& [base, mapping] : e->mappings) {
        protect(*e, base, mapping);
    }
    locked.store(false, std::memory_order_relaxed);
}

WorkScope::~WorkScope() {
    running_.fetch_sub(1, std::memory_order_relaxed);
}

void cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc* descriptors,
                    size_t count) {
    refuse_if(descriptors == nullptr || count == 0);
    const Changing e;
    const Mappings whole = whole_mappings(*e, pointer, size);
    std::size_t mapped = 0;
    for (const auto& [base, mapping] : whole) {
        mapped += mapping.size;
    }
    refuse_if(mapped != size);  // there are holes
    for (const auto& [base, mapping] : whole) {
        for (std::size_t i = 0; i < count; ++i) {
            check_descriptor(descriptors[i], *mapping.physical);
        }
    }
    for (auto& [base, mapping] : whole) {
        for (std::size_t i = 0; i < count; ++i) {
            mapping.rights[find_place(descriptors[i].location)] =
                static_cast<unsigned char>(descriptors[i].flags);
        }
        protect(*e, base, mapping);
    }
}

void cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr pointer) {
    refuse_if(flags == nullptr || location == nullptr);
    const Reading e;
    const auto mapping = entry_at(e->mappings, pointer);
    refuse_if(mapping == e->mappings.end());
    *flags = mapping->second.rights[find_place(*location)];
}

}  // namespace symm::emu
