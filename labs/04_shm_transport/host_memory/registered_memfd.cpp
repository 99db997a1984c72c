#include "labs/04_shm_transport/host_memory/registered_memfd.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/sys/system_error.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"

namespace symm {
namespace {

// No process that has the file descriptor can change the size of the memory, or add more seals.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Refuses more than the machine has: fallocate would take all its memory before failing, and the
// system would kill some process for lack of memory.
std::size_t whole_pages(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t machine = page * static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES));
    if (bytes > machine) {
        throw_system_error(
            ENOMEM,
            fmt::format("shared memory of {} bytes is more than the machine's {}", bytes, machine));
    }
    return round_up(bytes, page);
}

}  // namespace

SharedMemoryFile::SharedMemoryFile(UniqueFd fd, std::size_t bytes) : fd_(std::move(fd)) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (data == MAP_FAILED) {
        throw_errno("mmap(size={}) of shared memory", bytes);
    }
    value_ = {data, bytes};
}

void SharedMemoryFile::give_back(const Sized<void*>& mapped) {
    munmap(mapped.handle, mapped.bytes);
}

SharedMemoryFile SharedMemoryFile::create(std::size_t bytes) {
    const std::size_t size = whole_pages(bytes);
    UniqueFd fd = beside_standard_streams(
        UniqueFd(memfd_create("symm-host-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
    if (!fd) {
        throw_errno("memfd_create()");
    }
    int result = 0;
    do {
        result = fallocate(fd.get(), 0, 0, static_cast<off_t>(size));
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
        throw_errno("fallocate(size={}) of shared memory", size);
    }
    if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
        throw_errno("fcntl(F_ADD_SEALS)");
    }
    return SharedMemoryFile(std::move(fd), size);
}

SharedMemoryFile SharedMemoryFile::attach(UniqueFd fd, std::size_t bytes) {
    struct stat status {};
    if (fstat(fd.get(), &status) != 0) {
        throw_errno("fstat() of the file descriptor received");
    }
    // Pipes and ordinary files do not have these seals.
    if ((fcntl(fd.get(), F_GET_SEALS) & kSeals) != kSeals) {
        throw std::runtime_error("the file descriptor received is not sealed shared memory");
    }
    if (static_cast<std::size_t>(status.st_size) != bytes) {
        throw std::runtime_error(
            fmt::format("the shared memory received has {} bytes, not {}", status.st_size, bytes));
    }
    return SharedMemoryFile(std::move(fd), bytes);
}

HostRegistration::HostRegistration(int device, void* data, std::size_t bytes) {
    const auto context = std::make_shared<const Device>(device);
    // PORTABLE: for the contexts of all devices, not of the current one alone. DEVICEMAP: kernels
    // may use it, not only copies.
    cu_check(
        cuMemHostRegister(data, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
        "cuMemHostRegister(address={}, size={}, PORTABLE|DEVICEMAP)", data, bytes);
    value_ = {data, 0, context};
    // Usually the same as the host's address. Asks the driver anyway, as NCCL does.
    cu_check(cuMemHostGetDevicePointer(&value_.address, data, 0),
             "cuMemHostGetDevicePointer(address={})", data);
}

void HostRegistration::give_back(const Registered& registered) {
    cu_check(cuMemHostUnregister(registered.data), "cuMemHostUnregister(address={})",
             registered.data);
}

}  // namespace symm
