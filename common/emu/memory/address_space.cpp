// cuMemAddressReserve, cuMemAddressFree, cuMemMap, cuMemUnmap; cuMemRetainAllocationHandle,
// cuMemGetAddressRange.

#include "common/emu/memory/address_space.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "common/emu/memory/multicast.hpp"
#include "common/emu/memory/physical_memory.hpp"
#include "common/emu/streams/contexts.hpp"

namespace symm::emu {
namespace {

// The aligned base of `size` bytes of addresses without memory or access.
CUdeviceptr reserve_addresses(CUdeviceptr hint, std::size_t size, std::size_t alignment) {
    const std::size_t asked = size + alignment;  // holds an aligned range, wherever it begins
    void* raw =
        ::mmap(at(hint), asked, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) {
        refuse(shortage("mmap", errno));
    }
    const auto start = reinterpret_cast<CUdeviceptr>(raw);
    const CUdeviceptr base = (start + alignment - 1) / alignment * alignment;
    if (base > start) {
        ::munmap(raw, base - start);
    }
    if (const std::size_t rest = start + asked - (base + size); rest > 0) {
        ::munmap(at(base + size), rest);
    }
    return base;
}

}  // namespace

Mappings whole_mappings(Emulator& e, CUdeviceptr pointer, std::size_t size) {
    const CUdeviceptr end = pointer + size;
    const auto cut = entry_at(e.mappings, pointer);
    refuse_if(end <= pointer || (cut != e.mappings.end() && cut->first != pointer));
    const Mappings whole{e.mappings.lower_bound(pointer), e.mappings.lower_bound(end)};
    refuse_if(whole.first == whole.last);
    const auto& [base, mapping] = *std::prev(whole.last);
    refuse_if(base + mapping.size > end);
    return whole;
}

void cuMemAddressReserve(CUdeviceptr* pointer, size_t size, size_t alignment, CUdeviceptr address,
                         unsigned long long flags) {
    refuse_if(pointer == nullptr || flags != 0 || size == 0 || size % kGranularity != 0 ||
              (alignment & (alignment - 1)) != 0);  // not a power of two
    alignment = std::max(alignment, kGranularity);
    refuse_if(size + alignment < size, CUDA_ERROR_OUT_OF_MEMORY);
    const Changing e;
    *pointer = reserve_addresses(address, size, alignment);
    e->reservations[*pointer] = {size};
}

void cuMemAddressFree(CUdeviceptr pointer, size_t size) {
    const Changing e;
    const auto reservation = e->reservations.find(pointer);
    refuse_if(reservation == e->reservations.end() || reservation->second.size != size ||
              overlaps(e->mappings, pointer, size));
    ::munmap(at(pointer), size);
    e->reservations.erase(reservation);
}

void cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
              unsigned long long flags) {
    refuse_if(size == 0 || size % kGranularity != 0 || pointer % kGranularity != 0 || offset != 0 ||
              flags != 0);
    wait_for_team(handle);
    const Changing e;
    Physical& physical = find_physical(*e, handle);
    refuse_if(size > physical.size, CUDA_ERROR_NOT_SUPPORTED);
    refuse_if(entry_at(e->reservations, pointer, size) == e->reservations.end() ||
              overlaps(e->mappings, pointer, size));
    // Where an object is mapped, the addresses stay without memory.
    if (physical.team == nullptr && ::mmap(at(pointer), size, PROT_NONE, MAP_SHARED | MAP_FIXED,
                                           physical.fd.get(), 0) == MAP_FAILED) {
        refuse(shortage("mmap", errno));
    }
    Mapping& mapping = e->mappings[pointer];
    mapping.size = size;
    mapping.physical = &physical;
    mapping.protection = PROT_NONE;
    ++physical.mappings;
}

void cuMemUnmap(CUdeviceptr pointer, size_t size) {
    const Changing e;
    const Mappings whole = whole_mappings(*e, pointer, size);
    refuse_if(entry_at(e->reservations, pointer, size) == e->reservations.end());
    for (auto& [base, mapping] : whole) {
        ::mmap(at(base), mapping.size, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        --mapping.physical->mappings;
        drop_if_unused(*e, *mapping.physical);
    }
    e->mappings.erase(whole.first, whole.last);
}

void cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* pointer) {
    const Changing e;
    const auto mapping = entry_at(e->mappings, reinterpret_cast<CUdeviceptr>(pointer));
    refuse_if(handle == nullptr || mapping == e->mappings.end());
    Physical& physical = *mapping->second.physical;
    ++physical.references;
    *handle = physical.handle;
}

void cuMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr pointer) {
    current_context(Lost::kAllowed);
    const Reading e;
    const auto tell = [&](const auto& entry) {
        if (base != nullptr) {
            *base = entry.first;
        }
        if (size != nullptr) {
            *size = entry.second.size;
        }
    };
    const auto mapping = entry_at(e->mappings, pointer);
    if (mapping != e->mappings.end()) {
        refuse_if(mapping->second.all_rights() == 0, CUDA_ERROR_NOT_FOUND);
        return tell(*mapping);
    }
    const auto plain = entry_at(e->plain, pointer);
    refuse_if(plain == e->plain.end(), CUDA_ERROR_NOT_FOUND);
    tell(*plain);
}

}  // namespace symm::emu
