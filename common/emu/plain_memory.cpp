// cuMemAlloc, cuMemHostAlloc and back; cuMemGetInfo.

#include "common/emu/plain_memory.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "common/emu/contexts.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/shortage.hpp"

namespace symm::emu {
namespace {

std::size_t whole_pages(std::size_t size) {
    return (size + kPage - 1) / kPage * kPage;
}

bool holds(const PlainMemory& memory, bool host) {
    return host ? memory.kind == PlainMemory::Kind::kPinnedHost && !memory.registered
                : memory.kind == PlainMemory::Kind::kDevice;
}

CUresult allocate(PlainMemory memory, CUdeviceptr* pointer) {
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context));
    if (pointer == nullptr || memory.size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    const bool host = memory.kind == PlainMemory::Kind::kPinnedHost;
    std::size_t& used = e.devices[context->device].used;
    const std::size_t room = host ? e.configuration.memory * 16 : e.configuration.memory - used;
    if (memory.size > room || whole_pages(memory.size) > room) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory.mapped = whole_pages(memory.size);
    memory.device = context->device;
    memory.context = context->handle();
    memory.fd = new_memory_file(host ? "symm-pinned" : "symm-plain", memory.mapped);
    if (!memory.fd) {
        return shortage("memfd_create", errno);
    }
    memory.identity = identity_of(memory.fd.get());
    const CUresult result = keep_plain(e, std::move(memory), pointer);
    if (result == CUDA_SUCCESS && !host) {
        used += whole_pages(e.plain[*pointer].size);
    }
    return result;
}

// Waits for all work first, as the real driver does: what is queued may still use the memory.
CUresult deallocate(CUdeviceptr pointer, bool host) {
    Emulator& e = emulator();
    Context* owner = nullptr;
    {
        const ReadLock lock(e.mutex);
        const auto found = e.plain.find(pointer);
        if (found == e.plain.end() || !holds(found->second, host)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        owner = reinterpret_cast<Context*>(found->second.context);
    }
    finish_all_work(*owner);
    const WriteLock lock(e.mutex);
    const auto found = e.plain.find(pointer);
    if (found == e.plain.end() || !holds(found->second, host)) {
        return CUDA_ERROR_INVALID_VALUE;  // two threads freed it
    }
    drop_plain(e, pointer);
    return owner->lost.load(std::memory_order_relaxed);
}

}  // namespace

CUresult keep_plain(Emulator& e, PlainMemory memory, CUdeviceptr* pointer) {
    void* address =
        ::mmap(nullptr, memory.mapped, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd.get(), 0);
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
    if (memory.kind == PlainMemory::Kind::kDevice) {
        e.devices[memory.device].used -= memory.mapped;
    }
    if (!memory.registered) {
        ::munmap(reinterpret_cast<void*>(pointer), memory.mapped);
    }
    e.plain.erase(found);
}

CUresult cuMemAlloc(CUdeviceptr* pointer, size_t size) {
    SYMM_EMU_ENTER(cuMemAlloc);
    PlainMemory memory;
    memory.kind = PlainMemory::Kind::kDevice;
    memory.size = size;
    return allocate(std::move(memory), pointer);
}

CUresult cuMemFree(CUdeviceptr pointer) {
    SYMM_EMU_ENTER(cuMemFree);
    return pointer == 0 ? CUDA_SUCCESS : deallocate(pointer, false);
}

CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned int flags) {
    SYMM_EMU_ENTER(cuMemHostAlloc);
    constexpr unsigned kKnown =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (pointer == nullptr || (flags & ~kKnown) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    PlainMemory memory;
    memory.kind = PlainMemory::Kind::kPinnedHost;
    memory.size = size;
    CUdeviceptr address = 0;
    const CUresult result = allocate(std::move(memory), &address);
    if (result == CUDA_SUCCESS) {
        *pointer = reinterpret_cast<void*>(address);
    }
    return result;
}

CUresult cuMemFreeHost(void* pointer) {
    SYMM_EMU_ENTER(cuMemFreeHost);
    return deallocate(reinterpret_cast<CUdeviceptr>(pointer), true);
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
