// cuMemAlloc, and host memory that kernels may use: pinned (cuMemHostAlloc) and registered.

#include <sys/mman.h>

#include <cerrno>

#include "common/emu/address_space.hpp"
#include "common/emu/contexts.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/graphs.hpp"
#include "common/emu/shortage.hpp"

namespace symm::emu {
namespace {

using Kind = PlainMemory::Kind;

CUresult allocate(Kind kind, std::size_t size, CUdeviceptr* pointer) {
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context));
    SYMM_EMU_TRY(refuse_unsafe_call());
    if (pointer == nullptr || size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    PlainMemory memory{kind, size, context->device, context};
    std::size_t& used = e.devices[context->device].used;
    const std::size_t room =
        memory.on_host() ? e.configuration.memory * 16 : e.configuration.memory - used;
    if (size > room || whole_pages(size) > room) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory.fd = new_memory_file("symm-plain", whole_pages(size));
    if (!memory.fd) {
        return shortage("memfd_create", errno);
    }
    SYMM_EMU_TRY(keep_plain(e, std::move(memory), pointer));
    used += kind == Kind::kDevice ? whole_pages(size) : 0;
    return CUDA_SUCCESS;
}

// Frees or unregisters memory of this kind. Waits for all work of its context first, as the real
// driver does: queued work may still use the memory. Returns `unknown` if there is no such memory.
CUresult give_back(CUdeviceptr pointer, Kind kind, CUresult unknown) {
    Emulator& e = emulator();
    const auto owner_of = [&]() -> Context* {
        const auto found = e.plain.find(pointer);
        return found != e.plain.end() && found->second.kind == kind ? found->second.context
                                                                    : nullptr;
    };
    Context* owner = nullptr;
    {
        const ReadLock lock(e.mutex);
        owner = owner_of();
    }
    if (owner == nullptr) {
        return unknown;
    }
    finish_all_work(*owner);
    const WriteLock lock(e.mutex);
    if (owner_of() == nullptr) {
        return unknown;  // another thread has freed it meanwhile
    }
    drop_plain(e, pointer);
    return owner->state();
}

// Whether the process has memory at all pages of the range, which may begin inside a page.
bool is_mapped(CUdeviceptr pointer, std::size_t size) {
    unsigned char resident = 0;
    const CUdeviceptr end = pointer + size;
    for (CUdeviceptr page = pointer / kPage * kPage; page < end; page += kPage) {
        if (::mincore(at(page), 1, &resident) != 0) {
            return false;
        }
    }
    return true;
}

}  // namespace

CUresult keep_plain(Emulator& e, PlainMemory memory, CUdeviceptr* pointer) {
    void* address = ::mmap(nullptr, whole_pages(memory.size), PROT_READ | PROT_WRITE, MAP_SHARED,
                           memory.fd.get(), 0);
    if (address == MAP_FAILED) {
        return shortage("mmap", errno);
    }
    *pointer = reinterpret_cast<CUdeviceptr>(address);
    e.plain[*pointer] = std::move(memory);
    return CUDA_SUCCESS;
}

void drop_plain(Emulator& e, CUdeviceptr pointer) {
    const auto found = e.plain.find(pointer);
    const PlainMemory& memory = found->second;
    if (memory.kind == Kind::kDevice) {
        e.devices[memory.device].used -= whole_pages(memory.size);
    }
    if (memory.kind != Kind::kRegistered) {
        ::munmap(at(pointer), whole_pages(memory.size));
    }
    e.plain.erase(found);
}

CUresult cuMemAlloc(CUdeviceptr* pointer, size_t size) {
    SYMM_EMU_ENTER(cuMemAlloc);
    return allocate(Kind::kDevice, size, pointer);
}

CUresult cuMemFree(CUdeviceptr pointer) {
    SYMM_EMU_ENTER(cuMemFree);
    return pointer == 0 ? CUDA_SUCCESS
                        : give_back(pointer, Kind::kDevice, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned int flags) {
    SYMM_EMU_ENTER(cuMemHostAlloc);
    constexpr unsigned kKnown =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (pointer == nullptr || (flags & ~kKnown) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUdeviceptr address = 0;
    SYMM_EMU_TRY(allocate(Kind::kPinned, size, &address));
    *pointer = at(address);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void* pointer) {
    SYMM_EMU_ENTER(cuMemFreeHost);
    return give_back(reinterpret_cast<CUdeviceptr>(pointer), Kind::kPinned,
                     CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemHostRegister(void* memory, size_t size, unsigned int flags) {
    SYMM_EMU_ENTER(cuMemHostRegister);
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context));
    constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    const auto pointer = reinterpret_cast<CUdeviceptr>(memory);
    if (memory == nullptr || size == 0 || pointer + size < pointer || (flags & ~kKnown) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    if (overlaps(e.plain, pointer, size)) {
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    if (overlaps(e.reservations, pointer, size) || !is_mapped(pointer, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    e.plain[pointer] = {Kind::kRegistered, size, context->device, context};
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* memory) {
    SYMM_EMU_ENTER(cuMemHostUnregister);
    if (memory == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return give_back(reinterpret_cast<CUdeviceptr>(memory), Kind::kRegistered,
                     CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* pointer, void* memory, unsigned int flags) {
    SYMM_EMU_ENTER(cuMemHostGetDevicePointer);
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context));
    if (pointer == nullptr || memory == nullptr || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    const auto found = entry_at(e.plain, reinterpret_cast<CUdeviceptr>(memory));
    if (found == e.plain.end() || !found->second.on_host()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pointer = reinterpret_cast<CUdeviceptr>(memory);  // the GPU's address is the host's
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t* free, size_t* total) {
    SYMM_EMU_ENTER(cuMemGetInfo);
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context));
    if (free == nullptr || total == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    *total = e.configuration.memory;
    *free = *total - e.devices[context->device].used;
    return CUDA_SUCCESS;
}

}  // namespace symm::emu
