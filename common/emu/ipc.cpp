// cuIpcGetMemHandle and its kin: the older way to share, for cuMemAlloc's memory only.

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/emu/address_space.hpp"
#include "common/emu/contexts.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/plain_memory.hpp"
#include "common/emu/sharing.hpp"
#include "common/emu/shortage.hpp"

namespace symm::emu {

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
    SYMM_EMU_ENTER(cuIpcGetMemHandle);
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context));
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    const auto found = entry_at(e.plain, pointer);
    if (handle == nullptr || found == e.plain.end() ||
        found->second.kind != PlainMemory::Kind::kDevice) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    static_assert(sizeof(Ticket) <= sizeof(CUipcMemHandle));
    const PlainMemory& memory = found->second;
    const Ticket ticket = make_ticket(memory.fd.get(), memory.size, memory.device);
    std::memset(handle, 0, sizeof(*handle));
    std::memcpy(handle, &ticket, sizeof(ticket));
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
    SYMM_EMU_ENTER(cuIpcOpenMemHandle);
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context));
    Ticket ticket{};
    std::memcpy(&ticket, &handle, sizeof(ticket));
    if (pointer == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || !is_ticket(ticket) ||
        !is_device(ticket.device)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (ticket.process == ::getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT;  // only another process may open it
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    for (auto& [base, known] : e.plain) {
        if (known.kind == PlainMemory::Kind::kOpened && known.context == context->handle() &&
            known.identity == FileIdentity{ticket.file_device, ticket.file_inode}) {
            ++known.openings;
            *pointer = base;
            return CUDA_SUCCESS;
        }
    }
    PlainMemory memory;
    memory.fd = open_ticket(ticket);
    if (!memory.fd) {
        return errno == EMFILE || errno == ENFILE
                   ? shortage("opening the memory", errno)
                   : CUDA_ERROR_MAP_FAILED;  // the process, or the allocation, is gone
    }
    memory.kind = PlainMemory::Kind::kOpened;
    memory.identity = identity_of(memory.fd.get());
    memory.size = ticket.size;
    memory.mapped = (ticket.size + kPage - 1) / kPage * kPage;
    memory.device = ticket.device;
    memory.context = context->handle();
    memory.openings = 1;
    return keep_plain(e, std::move(memory), pointer);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
    SYMM_EMU_ENTER(cuIpcCloseMemHandle);
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context));
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    const auto found = e.plain.find(pointer);
    if (found == e.plain.end() || found->second.kind != PlainMemory::Kind::kOpened) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (--found->second.openings == 0) {
        drop_plain(e, pointer);
    }
    return CUDA_SUCCESS;
}

}  // namespace symm::emu
