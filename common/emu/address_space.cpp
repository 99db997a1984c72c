// cuMemAddressReserve, cuMemAddressFree, cuMemMap, cuMemUnmap; cuMemRetainAllocationHandle,
// cuMemGetAddressRange.

#include "common/emu/address_space.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "common/emu/access.hpp"
#include "common/emu/contexts.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/shortage.hpp"

namespace symm::emu {
namespace {

// The aligned base of `size` bytes of addresses without memory or access; 0 if mmap failed.
CUdeviceptr reserve_addresses(CUdeviceptr hint, std::size_t size, std::size_t alignment) {
    const std::size_t asked = size + alignment;  // holds an aligned range, wherever it begins
    void* raw =
        ::mmap(at(hint), asked, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) {
        return 0;
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

MappingRange whole_mappings(Emulator& e, CUdeviceptr pointer, std::size_t size, Holes holes) {
    const MappingRange none{e.mappings.end(), e.mappings.end()};
    const CUdeviceptr end = pointer + size;
    const auto cut = entry_at(e.mappings, pointer);
    if (end <= pointer || (cut != e.mappings.end() && cut->first != pointer)) {
        return none;
    }
    const auto first = e.mappings.lower_bound(pointer);
    auto last = first;
    CUdeviceptr filled = pointer;
    for (; last != e.mappings.end() && last->first < end; ++last) {
        if (holes == Holes::kNone && last->first != filled) {
            return none;
        }
        filled = last->first + last->second.size;
    }
    const bool complete = holes == Holes::kAllowed ? filled <= end : filled == end;
    return first != last && complete ? MappingRange{first, last} : none;
}

CUresult cuMemAddressReserve(CUdeviceptr* pointer, size_t size, size_t alignment,
                             CUdeviceptr address, unsigned long long flags) {
    SYMM_EMU_ENTER(cuMemAddressReserve);
    if (pointer == nullptr || flags != 0 || size == 0 || size % kGranularity != 0 ||
        (alignment & (alignment - 1)) != 0) {  // not a power of two
        return CUDA_ERROR_INVALID_VALUE;
    }
    alignment = std::max(alignment, kGranularity);
    if (size + alignment < size) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    const CUdeviceptr base = reserve_addresses(address, size, alignment);
    if (base == 0) {
        return shortage("mmap", errno);
    }
    e.reservations[base] = {size};
    *pointer = base;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size) {
    SYMM_EMU_ENTER(cuMemAddressFree);
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    const auto reservation = e.reservations.find(pointer);
    if (reservation == e.reservations.end() || reservation->second.size != size ||
        overlaps(e.mappings, pointer, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    ::munmap(at(pointer), size);
    e.reservations.erase(reservation);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    SYMM_EMU_ENTER(cuMemMap);
    if (size == 0 || size % kGranularity != 0 || pointer % kGranularity != 0 || offset != 0 ||
        flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    Physical* physical = find_physical(e, handle);
    if (physical == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size > physical->size) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (entry_at(e.reservations, pointer, size) == e.reservations.end() ||
        overlaps(e.mappings, pointer, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (::mmap(at(pointer), size, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->fd.get(), 0) ==
        MAP_FAILED) {
        return shortage("mmap", errno);
    }
    Mapping& mapping = e.mappings[pointer];
    mapping.size = size;
    mapping.physical = physical;
    mapping.protection = PROT_NONE;
    ++physical->mappings;
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t size) {
    SYMM_EMU_ENTER(cuMemUnmap);
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    const auto [first, last] = whole_mappings(e, pointer, size, Holes::kAllowed);
    if (first == last || entry_at(e.reservations, pointer, size) == e.reservations.end()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (auto one = first; one != last; ++one) {
        auto& [base, mapping] = *one;
        ::mmap(at(base), mapping.size, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        --mapping.physical->mappings;
        drop_if_unused(e, *mapping.physical);
    }
    e.mappings.erase(first, last);
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* pointer) {
    SYMM_EMU_ENTER(cuMemRetainAllocationHandle);
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    const auto mapping = entry_at(e.mappings, reinterpret_cast<CUdeviceptr>(pointer));
    if (handle == nullptr || mapping == e.mappings.end()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Physical& physical = *mapping->second.physical;
    ++physical.references;
    *handle = physical.handle;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr pointer) {
    SYMM_EMU_ENTER(cuMemGetAddressRange);
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context, Lost::kAllowed));
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    const auto answer = [&](const auto& entry) {
        if (base != nullptr) {
            *base = entry.first;
        }
        if (size != nullptr) {
            *size = entry.second.size;
        }
        return CUDA_SUCCESS;
    };
    const auto mapping = entry_at(e.mappings, pointer);
    if (mapping != e.mappings.end()) {
        return mapping->second.all_rights() != 0 ? answer(*mapping) : CUDA_ERROR_NOT_FOUND;
    }
    const auto plain = entry_at(e.plain, pointer);
    return plain != e.plain.end() ? answer(*plain) : CUDA_ERROR_NOT_FOUND;
}

}  // namespace symm::emu
