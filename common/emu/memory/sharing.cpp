// Handles for other processes: file descriptors, fabric handles, dma-buf, and the older cuIpc*, for
// memory of cuMemAlloc only.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "common/emu/memory/address_space.hpp"
#include "common/emu/memory/physical_memory.hpp"
#include "common/emu/streams/contexts.hpp"
#include "common/sys/pages.hpp"

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

// Writes the ticket of a file into a handle, either kind.
template <class Handle>
void write_ticket(Handle* handle, int fd, std::size_t size, int device) {
    Ticket ticket{{}, ::getpid(), fd, identity_of(fd), size, device};
    std::memcpy(ticket.magic, kTicketMagic, sizeof(kTicketMagic));
    std::memset(handle, 0, sizeof(*handle));
    std::memcpy(handle, &ticket, sizeof(ticket));
}

Ticket read_ticket(const void* handle) {
    Ticket ticket{};
    std::memcpy(&ticket, handle, sizeof(ticket));
    refuse_if(std::memcmp(ticket.magic, kTicketMagic, sizeof(kTicketMagic)) != 0);
    return ticket;
}

// Opens a file again. Refuses with `gone` if there is none, with shortage() if no descriptor is
// left.
UniqueFd open_again(pid_t process, int number, CUresult gone) {
    const std::string path = fmt::format("/proc/{}/fd/{}", process, number);
    UniqueFd fd = beside_standard_streams(UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC)));
    if (!fd) {
        refuse(errno == EMFILE || errno == ENFILE ? shortage("opening the memory", errno) : gone);
    }
    return fd;
}

// Opens the ticket's file. Refuses with `gone` if the process or the file is gone.
UniqueFd open_ticket(const Ticket& ticket, CUresult gone) {
    UniqueFd fd = open_again(ticket.process, ticket.fd, gone);
    refuse_if(identity_of(fd.get()) != ticket.file, gone);  // the number is now another file's
    return fd;
}

UniqueFd duplicate(int fd) {
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!copy) {
        refuse(errno == EBADF ? CUDA_ERROR_INVALID_VALUE : shortage("fcntl", errno));
    }
    return copy;
}

}  // namespace

void cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                  CUmemAllocationHandleType type, unsigned long long flags) {
    const Reading e;
    const Physical& physical = find_physical(*e, handle);
    refuse_if(shareable == nullptr || flags != 0 || physical.imported ||
              (physical.properties.requestedHandleTypes & type) == 0);
    if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
        write_ticket(static_cast<CUmemFabricHandle*>(shareable), physical.fd.get(), physical.size,
                     physical.owner());
        return;
    }
    refuse_if(type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    const int fd = duplicate(physical.fd.get()).release();
    std::memcpy(shareable, &fd, sizeof(fd));
}

void cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                    CUmemAllocationHandleType type) {
    refuse_if(handle == nullptr);
    UniqueFd fd;
    if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        // The pointer's value is the descriptor. The caller keeps and closes its own.
        fd = duplicate(static_cast<int>(reinterpret_cast<std::intptr_t>(shareable)));
    } else {
        refuse_if(type != CU_MEM_HANDLE_TYPE_FABRIC || shareable == nullptr);
        fd = open_ticket(read_ticket(shareable), CUDA_ERROR_INVALID_VALUE);
    }
    const Changing e;
    *handle = import_physical(*e, std::move(fd), type);
}

// The descriptor opens the memory's own file again, with its file offset at the range. A real
// dma-buf begins with the range, but this file begins with the allocation: to map a range that
// begins later, pass mmap the offset that lseek(fd, 0, SEEK_CUR) returns.
void cuMemGetHandleForAddressRange(void* handle, CUdeviceptr pointer, size_t size,
                                   CUmemRangeHandleType type, unsigned long long flags) {
    refuse_if(handle == nullptr || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags != 0 ||
              size == 0 || pointer % page_bytes() != 0 || size % page_bytes() != 0);
    const Reading e;
    const auto mapping = entry_at(e->mappings, pointer, size);
    const auto plain = entry_at(e->plain, pointer);
    CUdeviceptr base = 0;
    int fd = -1;
    if (mapping != e->mappings.end()) {
        refuse_if(mapping->second.physical->team != nullptr);
        base = mapping->first;
        fd = mapping->second.physical->fd.get();
    } else {
        refuse_if(plain == e->plain.end() || plain->second.kind != PlainMemory::Kind::kDevice ||
                  size > whole_pages(plain->second.size) - (pointer - plain->first));
        base = plain->first;
        fd = plain->second.fd.get();
    }
    const int again = open_again(::getpid(), fd, CUDA_ERROR_OPERATING_SYSTEM).release();
    ::lseek(again, static_cast<off_t>(pointer - base), SEEK_SET);
    std::memcpy(handle, &again, sizeof(again));
}

void cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
    current_context();
    const Reading e;
    const auto found = entry_at(e->plain, pointer);
    refuse_if(handle == nullptr || found == e->plain.end() ||
              found->second.kind != PlainMemory::Kind::kDevice);
    const PlainMemory& memory = found->second;
    write_ticket(handle, memory.fd.get(), memory.size, memory.device);
}

void cuIpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
    Context& context = current_context();
    refuse_if(pointer == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    const Ticket ticket = read_ticket(&handle);
    const int devices = emulator().configuration.devices;
    refuse_if(ticket.device < 0 || ticket.device >= devices);
    // Only another process may open it.
    refuse_if(ticket.process == ::getpid(), CUDA_ERROR_INVALID_CONTEXT);
    const Changing e;
    for (auto& [base, known] : e->plain) {
        if (known.kind == PlainMemory::Kind::kOpened && known.context == &context &&
            identity_of(known.fd.get()) == ticket.file) {
            ++known.openings;
            *pointer = base;
            return;
        }
    }
    PlainMemory memory{PlainMemory::Kind::kOpened, ticket.size, ticket.device, &context};
    memory.fd = open_ticket(ticket, CUDA_ERROR_MAP_FAILED);
    memory.openings = 1;
    *pointer = keep_plain(*e, std::move(memory));
}

void cuIpcCloseMemHandle(CUdeviceptr pointer) {
    current_context();
    const Changing e;
    const auto found = e->plain.find(pointer);
    refuse_if(found == e->plain.end() || found->second.kind != PlainMemory::Kind::kOpened);
    if (--found->second.openings == 0) {
        e->plain.erase(found);
    }
}

}  // namespace symm::emu
