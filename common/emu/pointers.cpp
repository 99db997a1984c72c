// What is known of an address: cuMemGetAddressRange, cuPointerGetAttribute.

#include <algorithm>

#include "common/emu/access.hpp"
#include "common/emu/address_space.hpp"
#include "common/emu/contexts.hpp"
#include "common/emu/emulated_driver.hpp"

namespace symm::emu {
namespace {

// One picture of a mapping and of a plain allocation.
struct Known {
    CUdeviceptr base = 0;
    std::size_t size = 0;
    int owner = 0;
    CUcontext context = nullptr;
    std::uint64_t id = 0;
    unsigned handle_types = 0;
    bool legacy_ipc = false;
    bool rdma = false;
    unsigned char rights_of_current = 0;
    bool usable = true;  ///< Somebody has access.
};

bool describe(Emulator& e, CUdeviceptr pointer, const Context* context, Known& known) {
    if (const auto found = entry_at(e.mappings, pointer); found != e.mappings.end()) {
        const auto& [base, mapping] = *found;
        const Physical& physical = *mapping.physical;
        known.base = base;
        known.size = mapping.size;
        known.owner = physical.owner();
        known.id = physical.handle;
        known.handle_types = physical.properties.requestedHandleTypes;
        known.rdma = physical.properties.allocFlags.gpuDirectRDMACapable != 0;
        known.rights_of_current = context != nullptr ? mapping.rights[context->device] : 0;
        known.usable = std::any_of(mapping.rights.begin(), mapping.rights.end(),
                                   [](unsigned char rights) { return rights != 0; });
        return true;
    }
    if (const auto found = entry_at(e.plain, pointer); found != e.plain.end()) {
        const auto& [base, memory] = *found;
        known.base = base;
        known.size = memory.size;
        known.owner = memory.kind == PlainMemory::Kind::kPinnedHost ? kHost : memory.device;
        known.context = memory.context;
        known.id = memory.id;
        known.legacy_ipc = memory.kind == PlainMemory::Kind::kDevice;
        known.rdma = memory.kind == PlainMemory::Kind::kDevice;
        known.rights_of_current = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return true;
    }
    return false;
}

template <class Value>
CUresult give(void* where, Value value) {
    *static_cast<Value*>(where) = value;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr pointer) {
    SYMM_EMU_ENTER(cuMemGetAddressRange);
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    Known known;
    if (!describe(e, pointer, nullptr, known) || !known.usable) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (base != nullptr) {
        *base = known.base;
    }
    if (size != nullptr) {
        *size = known.size;
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
    SYMM_EMU_ENTER(cuPointerGetAttribute);
    Context* context = nullptr;
    if (const CUresult result = current_context(context); result != CUDA_SUCCESS) {
        return result;
    }
    if (value == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    Known known;
    const bool found = describe(e, pointer, context, known);
    if (attribute == CU_POINTER_ATTRIBUTE_MAPPED) {  // the one question about any address
        return give(value, found ? 1 : 0);
    }
    if (!found) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const bool host = known.owner == kHost;
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            return give(value, known.context);
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return give(value,
                        static_cast<unsigned>(host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return give(value, pointer);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            return host ? give(value, reinterpret_cast<void*>(pointer)) : CUDA_ERROR_INVALID_VALUE;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return give(value, host ? context->device : known.owner);
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            return give(value, static_cast<unsigned long long>(known.id));
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return give(value, 0u);
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            return give(value, known.legacy_ipc ? 1 : 0);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            return give(value, known.base);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            return give(value, known.size);
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            return give(value, static_cast<unsigned long long>(known.handle_types));
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
            return give(value, known.rdma ? 1 : 0);
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return give(value, static_cast<unsigned>(known.rights_of_current));
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace symm::emu
