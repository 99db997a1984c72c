// cuMemAlloc, and host memory that kernels may use: pinned (cuMemHostAlloc) and registered.

#include <sys/mman.h>

#include <algorithm>

#include "common/emu/memory/address_space.hpp"
#include "common/emu/memory/physical_memory.hpp"
#include "common/emu/streams/contexts.hpp"
#include "common/emu/streams/graphs.hpp"
#include "common/sys/pages.hpp"

namespace symm::emu {
namespace {

using Kind = PlainMemory::Kind;

CUdeviceptr allocate(Kind kind, std::size_t size) {
    Context& context = current_context();
    refuse_unsafe_call();
    refuse_if(size == 0);
    const Changing e;
    PlainMemory memory{kind, size, context.device, &context};
    const std::size_t bytes = std::max(size, whole_pages(size));  // a huge size wraps
    check_room(*e, memory.on_host() ? kHost : context.device, bytes);
    memory.fd = new_memory_file("symm-plain", bytes);
    return keep_plain(*e, std::move(memory));
}

// Frees or unregisters memory of this kind. Waits for all work of its context first, as the real
// driver does: queued work may still use the memory. Refuses with `unknown` if there is no such
// memory.
void give_back(CUdeviceptr pointer, Kind kind, CUresult unknown = CUDA_ERROR_INVALID_VALUE) {
    Emulator& e = emulator();
    const auto find = [&] {
        const auto found = e.plain.find(pointer);
        refuse_if(found == e.plain.end() || found->second.kind != kind, unknown);
        return found;
    };
    Context* owner = nullptr;
    {
        const Reading lock;
        owner = find()->second.context;
    }
    finish_all_work(*owner);
    const Changing lock;
    e.plain.erase(find());  // unless another thread has freed it meanwhile
    owner->check_state();
}

// Whether the process has memory at all pages of the range, which may begin inside a page.
bool is_mapped(CUdeviceptr pointer, std::size_t size) {
    unsigned char resident = 0;
    const CUdeviceptr end = pointer + size;
    for (CUdeviceptr page = pointer / page_bytes() * page_bytes(); page < end;
         page += page_bytes()) {
        if (::mincore(at(page), 1, &resident) != 0) {
            return false;
        }
    }
    return true;
}

}  // namespace

CUdeviceptr keep_plain(Emulator& e, PlainMemory memory) {
    const std::size_t bytes = whole_pages(memory.size);
    void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd.get(), 0);
    if (pages == MAP_FAILED) {
        refuse(shortage("mmap", errno));
    }
    memory.pages = {pages, Unmapping{bytes}};
    const auto pointer = reinterpret_cast<CUdeviceptr>(pages);
    e.plain[pointer] = std::move(memory);
    return pointer;
}

void cuMemAlloc(CUdeviceptr* pointer, size_t size) {
    refuse_if(pointer == nullptr);
    *pointer = allocate(Kind::kDevice, size);
}

void cuMemFree(CUdeviceptr pointer) {
    if (pointer != 0) {
        give_back(pointer, Kind::kDevice);
    }
}

void cuMemHostAlloc(void** pointer, size_t size, unsigned int flags) {
    constexpr unsigned kKnown =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    refuse_if(pointer == nullptr || (flags & ~kKnown) != 0);
    *pointer = at(allocate(Kind::kPinned, size));
}

void cuMemFreeHost(void* pointer) {
    give_back(reinterpret_cast<CUdeviceptr>(pointer), Kind::kPinned);
}

void cuMemHostRegister(void* memory, size_t size, unsigned int flags) {
    Context& context = current_context();
    constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    const auto pointer = reinterpret_cast<CUdeviceptr>(memory);
    refuse_if(memory == nullptr || size == 0 || pointer + size < pointer || (flags & ~kKnown) != 0);
    const Changing e;
    refuse_if(overlaps(e->plain, pointer, size), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    refuse_if(overlaps(e->reservations, pointer, size) || !is_mapped(pointer, size));
    e->plain[pointer] = {Kind::kRegistered, size, context.device, &context};
}

void cuMemHostUnregister(void* memory) {
    refuse_if(memory == nullptr);
    give_back(reinterpret_cast<CUdeviceptr>(memory), Kind::kRegistered,
              CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

void cuMemHostGetDevicePointer(CUdeviceptr* pointer, void* memory, unsigned int flags) {
    current_context();
    refuse_if(pointer == nullptr || memory == nullptr || flags != 0);
    const Reading e;
    const auto found = entry_at(e->plain, reinterpret_cast<CUdeviceptr>(memory));
    refuse_if(found == e->plain.end() || !found->second.on_host());
    *pointer = reinterpret_cast<CUdeviceptr>(memory);  // the GPU's address is the host's
}

void cuMemGetInfo(size_t* free, size_t* total) {
    const Context& context = current_context();
    refuse_if(free == nullptr || total == nullptr);
    const Reading e;
    *total = e->configuration.memory;
    *free = *total - used_on(*e, context.device);
}

}  // namespace symm::emu
