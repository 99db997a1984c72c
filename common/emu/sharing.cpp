// Handles for other processes: file descriptors, fabric handles, dma-buf, and the older cuIpc*, for
// memory of cuMemAlloc only.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/emu/address_space.hpp"
#include "common/emu/contexts.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/shortage.hpp"

namespace symm::emu {
namespace {

constexpr char kTicketMagic[8] = "symm-fd";

// The content of a CUmemFabricHandle and of a CUipcMemHandle: it names an open file of a process of
// this user. Another process opens /proc/PID/fd/N, so a process that ends leaves nothing behind.
struct Ticket {
    char magic[sizeof(kTicketMagic)];
    pid_t process;
    int fd;
    FileIdentity file;
    std::size_t size;
    int device;
};
static_assert(sizeof(Ticket) <= sizeof(CUmemFabricHandle));
static_assert(sizeof(Ticket) <= sizeof(CUipcMemHandle));

Ticket make_ticket(int fd, std::size_t size, int device) {
    Ticket ticket{{}, ::getpid(), fd, identity_of(fd), size, device};
    std::memcpy(ticket.magic, kTicketMagic, sizeof(kTicketMagic));
    return ticket;
}

bool is_ticket(const Ticket& ticket) {
    return std::memcmp(ticket.magic, kTicketMagic, sizeof(kTicketMagic)) == 0;
}

// Opens the file; empty if the process or the file is gone.
UniqueFd open_ticket(const Ticket& ticket) {
    const std::string path =
        "/proc/" + std::to_string(ticket.process) + "/fd/" + std::to_string(ticket.fd);
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    return fd && identity_of(fd.get()) == ticket.file ? std::move(fd)
                                                      : UniqueFd();  // now another file's number
}

UniqueFd duplicate(int fd) {
    return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

// The error for memory that could not be opened: shortage() for lack of descriptors, else `gone`.
CUresult cannot_open(CUresult gone) {
    return errno == EMFILE || errno == ENFILE ? shortage("opening the memory", errno) : gone;
}

}  // namespace

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
    SYMM_EMU_ENTER(cuMemExportToShareableHandle);
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    const Physical* physical = find_physical(e, handle);
    if (shareable == nullptr || flags != 0 || physical == nullptr || physical->imported ||
        (physical->properties.requestedHandleTypes & type) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
        const Ticket ticket = make_ticket(physical->fd.get(), physical->size, physical->owner());
        std::memset(shareable, 0, sizeof(CUmemFabricHandle));
        std::memcpy(shareable, &ticket, sizeof(ticket));
        return CUDA_SUCCESS;
    }
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const int fd = duplicate(physical->fd.get()).release();
    if (fd < 0) {
        return shortage("fcntl", errno);
    }
    std::memcpy(shareable, &fd, sizeof(fd));
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
    SYMM_EMU_ENTER(cuMemImportFromShareableHandle);
    if (handle == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    UniqueFd fd;
    errno = 0;
    if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        // The pointer's value is the descriptor. The caller keeps and closes its own.
        fd = duplicate(static_cast<int>(reinterpret_cast<std::intptr_t>(shareable)));
    } else if (type == CU_MEM_HANDLE_TYPE_FABRIC && shareable != nullptr) {
        Ticket ticket{};
        std::memcpy(&ticket, shareable, sizeof(ticket));
        if (is_ticket(ticket)) {
            fd = open_ticket(ticket);
        }
    }
    if (!fd) {
        return cannot_open(CUDA_ERROR_INVALID_VALUE);
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    return import_physical(e, std::move(fd), type, handle);
}

// The descriptor opens the memory's own file again, with its file offset at the range. A real
// dma-buf begins with the range, but this file begins with the allocation: to map a range that
// begins later, pass mmap the offset that lseek(fd, 0, SEEK_CUR) returns.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr pointer, size_t size,
                                       CUmemRangeHandleType type, unsigned long long flags) {
    SYMM_EMU_ENTER(cuMemGetHandleForAddressRange);
    if (handle == nullptr || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags != 0 ||
        size == 0 || pointer % kPage != 0 || size % kPage != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    const auto mapping = entry_at(e.mappings, pointer, size);
    const auto plain = entry_at(e.plain, pointer);
    CUdeviceptr base = 0;
    int fd = -1;
    if (mapping != e.mappings.end()) {
        base = mapping->first;
        fd = mapping->second.physical->fd.get();
    } else if (plain != e.plain.end() && plain->second.kind == PlainMemory::Kind::kDevice &&
               size <= whole_pages(plain->second.size) - (pointer - plain->first)) {
        base = plain->first;
        fd = plain->second.fd.get();
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const int copy = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (copy < 0) {
        return shortage("open", errno);
    }
    ::lseek(copy, static_cast<off_t>(pointer - base), SEEK_SET);
    std::memcpy(handle, &copy, sizeof(copy));
    return CUDA_SUCCESS;
}

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
        if (known.kind == PlainMemory::Kind::kOpened && known.context == context &&
            identity_of(known.fd.get()) == ticket.file) {
            ++known.openings;
            *pointer = base;
            return CUDA_SUCCESS;
        }
    }
    PlainMemory memory{PlainMemory::Kind::kOpened, ticket.size, ticket.device, context};
    memory.fd = open_ticket(ticket);
    if (!memory.fd) {
        return cannot_open(CUDA_ERROR_MAP_FAILED);  // the process, or the allocation, is gone
    }
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
