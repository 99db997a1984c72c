// cuMemHostRegister, cuMemHostUnregister, cuMemHostGetDevicePointer: host memory of the caller's
// own that kernels may use.

#include <sys/mman.h>

#include "common/emu/address_space.hpp"
#include "common/emu/contexts.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"

namespace symm::emu {
namespace {

// Whether the process has memory at all these pages. The registered range need not start on one.
bool is_mapped(CUdeviceptr pointer, std::size_t size) {
    unsigned char resident = 0;
    const CUdeviceptr end = pointer + size;
    for (CUdeviceptr page = pointer / kPage * kPage; page < end; page += kPage) {
        if (::mincore(reinterpret_cast<void*>(page), 1, &resident) != 0) {
            return false;
        }
    }
    return true;
}

template <class Map>
bool overlaps(const Map& map, CUdeviceptr pointer, std::size_t size) {
    const auto next = map.lower_bound(pointer);
    if (next != map.end() && next->first < pointer + size) {
        return true;
    }
    return entry_at(map, pointer) != map.end();
}

bool is_registered(const Emulator& e, CUdeviceptr pointer) {
    const auto found = e.plain.find(pointer);
    return found != e.plain.end() && found->second.registered;
}

}  // namespace

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
    PlainMemory known;
    known.kind = PlainMemory::Kind::kPinnedHost;
    known.registered = true;
    known.size = size;
    known.device = context->device;
    known.context = context->handle();
    e.plain[pointer] = std::move(known);
    return CUDA_SUCCESS;
}

// Waits for all work first, as freeing does: what is queued may still use the memory.
CUresult cuMemHostUnregister(void* memory) {
    SYMM_EMU_ENTER(cuMemHostUnregister);
    const auto pointer = reinterpret_cast<CUdeviceptr>(memory);
    if (memory == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    Context* owner = nullptr;
    {
        const ReadLock lock(e.mutex);
        if (!is_registered(e, pointer)) {
            return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        }
        owner = reinterpret_cast<Context*>(e.plain.at(pointer).context);
    }
    finish_all_work(*owner);
    const WriteLock lock(e.mutex);
    if (!is_registered(e, pointer)) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;  // two threads did it
    }
    e.plain.erase(pointer);
    return CUDA_SUCCESS;
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
    if (found == e.plain.end() || found->second.kind != PlainMemory::Kind::kPinnedHost) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pointer = reinterpret_cast<CUdeviceptr>(memory);  // the GPU's address is the host's
    return CUDA_SUCCESS;
}

}  // namespace symm::emu
