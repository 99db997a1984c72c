// Handles that leave the process: file descriptors, fabric handles, dma-buf.

#include "common/emu/sharing.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/emu/address_space.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/physical_memory.hpp"
#include "common/emu/shortage.hpp"

namespace symm::emu {
namespace {

constexpr char kMagic[8] = "symm-fd";

UniqueFd duplicate(int fd) {
    return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

}  // namespace

Ticket make_ticket(int fd, std::size_t size, int device) {
    Ticket ticket{};
    std::memcpy(ticket.magic, kMagic, sizeof(kMagic));
    const FileIdentity identity = identity_of(fd);
    ticket.process = ::getpid();
    ticket.fd = fd;
    ticket.file_device = identity.device;
    ticket.file_inode = identity.inode;
    ticket.size = size;
    ticket.device = device;
    return ticket;
}

bool is_ticket(const Ticket& ticket) {
    return std::memcmp(ticket.magic, kMagic, sizeof(kMagic)) == 0 && ticket.process > 0 &&
           ticket.fd >= 0;
}

UniqueFd open_ticket(const Ticket& ticket) {
    const std::string path =
        "/proc/" + std::to_string(ticket.process) + "/fd/" + std::to_string(ticket.fd);
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    // The number may name another file by now.
    if (fd && identity_of(fd.get()) != FileIdentity{ticket.file_device, ticket.file_inode}) {
        return {};
    }
    return fd;
}

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
        static_assert(sizeof(Ticket) <= sizeof(CUmemFabricHandle));
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
        // The number itself, in a pointer's clothes. The caller keeps and closes its own.
        fd = duplicate(static_cast<int>(reinterpret_cast<std::intptr_t>(shareable)));
    } else if (type == CU_MEM_HANDLE_TYPE_FABRIC && shareable != nullptr) {
        Ticket ticket{};
        std::memcpy(&ticket, shareable, sizeof(ticket));
        if (is_ticket(ticket)) {
            fd = open_ticket(ticket);
        }
    }
    if (!fd) {
        return errno == EMFILE || errno == ENFILE ? shortage("opening the memory", errno)
                                                  : CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    return import_physical(e, std::move(fd), type, handle);
}

// The descriptor is an opening of the memory's own file, positioned at the range. A real dma-buf
// begins with the range; a file cannot, so a range inside an allocation is mmap'ed at lseek's
// answer.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr pointer, size_t size,
                                       CUmemRangeHandleType type, unsigned long long flags) {
    SYMM_EMU_ENTER(cuMemGetHandleForAddressRange);
    if (handle == nullptr || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags != 0 ||
        size == 0 || !is_multiple(pointer, kPage) || !is_multiple(size, kPage)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    const auto mapping = entry_at(e.mappings, pointer);
    const auto plain = entry_at(e.plain, pointer);
    CUdeviceptr base = 0;
    std::size_t room = 0;
    int fd = -1;
    if (mapping != e.mappings.end()) {
        base = mapping->first;
        room = mapping->second.size;
        fd = mapping->second.physical->fd.get();
    } else if (plain != e.plain.end() && plain->second.kind == PlainMemory::Kind::kDevice) {
        base = plain->first;
        room = plain->second.mapped;
        fd = plain->second.fd.get();
    }
    if (fd < 0 || size > room - (pointer - base)) {
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

}  // namespace symm::emu
