// cuMemCreate, cuMemRelease and what is asked of physical memory.

#include "common/emu/physical_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/shortage.hpp"

namespace symm::emu {
namespace {

constexpr char kMagic[16] = "symm physical 1";

// What the page after the data says. Fields of fixed size: another process reads them.
struct Trailer {
    char magic[16];
    std::uint64_t size;
    std::int32_t location_type;
    std::int32_t location_id;
    std::uint32_t handle_types;
    std::uint32_t rdma;
};

CUresult check_location(const CUmemLocation& location) {
    switch (location.type) {
        case CU_MEM_LOCATION_TYPE_DEVICE:
            return is_device(location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
        case CU_MEM_LOCATION_TYPE_HOST:
            return CUDA_SUCCESS;
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:  // one node, numbered 0
            return location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult check_properties(const CUmemAllocationProp* properties) {
    constexpr unsigned kKnownTypes =
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
    if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        (static_cast<unsigned>(properties->requestedHandleTypes) & ~kKnownTypes) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (properties->location.type == CU_MEM_LOCATION_TYPE_HOST &&
        properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
        return CUDA_ERROR_INVALID_VALUE;  // only memory of a NUMA node can be shared
    }
    return check_location(properties->location);
}

bool write_trailer(const Physical& physical) {
    Trailer trailer{};
    std::memcpy(trailer.magic, kMagic, sizeof(kMagic));
    trailer.size = physical.size;
    trailer.location_type = physical.properties.location.type;
    trailer.location_id = physical.properties.location.id;
    trailer.handle_types = physical.properties.requestedHandleTypes;
    trailer.rdma = physical.properties.allocFlags.gpuDirectRDMACapable;
    return ::pwrite(physical.fd.get(), &trailer, sizeof(trailer),
                    static_cast<off_t>(physical.size)) == sizeof(trailer);
}

// False for any file that cuMemCreate did not make.
bool read_trailer(int fd, Trailer& trailer) {
    struct stat status {};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size <= static_cast<off_t>(kPage)) {
        return false;
    }
    const off_t size = status.st_size - static_cast<off_t>(kPage);
    return ::pread(fd, &trailer, sizeof(trailer), size) == sizeof(trailer) &&
           std::memcmp(trailer.magic, kMagic, sizeof(kMagic)) == 0 &&
           trailer.size == static_cast<std::uint64_t>(size) &&
           is_multiple(trailer.size, kGranularity);
}

Physical& keep(Emulator& e, std::unique_ptr<Physical> physical) {
    physical->handle = e.new_handle();
    physical->references = 1;
    return *(e.physicals[physical->handle] = std::move(physical));
}

}  // namespace

UniqueFd new_memory_file(const char* name, std::size_t size) {
    UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
        return {};
    }
    // Nobody it travels to can cut it short under those who have it mapped.
    ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    return fd;
}

FileIdentity identity_of(int fd) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) {
        return {};
    }
    return {status.st_dev, status.st_ino};
}

Physical* find_physical(Emulator& e, CUmemGenericAllocationHandle handle) {
    const auto found = e.physicals.find(handle);
    const bool valid = found != e.physicals.end() && found->second->references > 0;
    return valid ? found->second.get() : nullptr;
}

void drop_if_unused(Emulator& e, Physical& physical) {
    if (physical.references > 0 || physical.mappings > 0) {
        return;
    }
    if (physical.on_device() && !physical.imported) {
        e.devices[physical.owner()].used -= physical.size;
    }
    e.physicals.erase(physical.handle);
}

CUresult import_physical(Emulator& e, UniqueFd fd, CUmemAllocationHandleType type,
                         CUmemGenericAllocationHandle* handle) {
    Trailer trailer{};
    if (!read_trailer(fd.get(), trailer) ||
        (trailer.handle_types & static_cast<unsigned>(type)) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto physical = std::make_unique<Physical>();
    physical->identity = identity_of(fd.get());
    for (const auto& [known_handle, known] : e.physicals) {
        if (known->identity ==
            physical->identity) {  // exported by this process, or imported before
            ++known->references;
            *handle = known_handle;
            return CUDA_SUCCESS;
        }
    }
    physical->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    physical->properties.location.type = static_cast<CUmemLocationType>(trailer.location_type);
    physical->properties.location.id = trailer.location_id;
    physical->properties.requestedHandleTypes =
        static_cast<CUmemAllocationHandleType>(trailer.handle_types);
    physical->properties.allocFlags.gpuDirectRDMACapable = trailer.rdma != 0;
    if (check_location(physical->properties.location) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_DEVICE;  // of a process with more devices than this one sees
    }
    physical->fd = std::move(fd);
    physical->size = trailer.size;
    physical->imported = true;
    *handle = keep(e, std::move(physical)).handle;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option) {
    SYMM_EMU_ENTER(cuMemGetAllocationGranularity);
    // The properties are not judged: a real driver leaves that to cuMemCreate.
    if (granularity == nullptr || properties == nullptr ||
        (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
         option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *granularity = kGranularity;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
    SYMM_EMU_ENTER(cuMemCreate);
    if (handle == nullptr || flags != 0 || size == 0 || !is_multiple(size, kGranularity)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    SYMM_EMU_TRY(check_properties(properties));
    Emulator& e = emulator();
    if ((properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0 &&
        !e.configuration.fabric) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    auto physical = std::make_unique<Physical>();
    physical->size = size;
    physical->properties = *properties;
    const WriteLock lock(e.mutex);
    const int owner = physical->owner();
    // Host memory is not counted, only kept within reason.
    const std::size_t room = owner == kHost ? e.configuration.memory * 16
                                            : e.configuration.memory - e.devices[owner].used;
    if (size > room) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->fd = new_memory_file("symm-physical", size + kPage);
    if (!physical->fd || !write_trailer(*physical)) {
        return shortage("memfd_create", errno);
    }
    physical->identity = identity_of(physical->fd.get());
    if (owner != kHost) {
        e.devices[owner].used += size;
    }
    *handle = keep(e, std::move(physical)).handle;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    SYMM_EMU_ENTER(cuMemRelease);
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    Physical* physical = find_physical(e, handle);
    if (physical == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    --physical->references;
    drop_if_unused(e, *physical);
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
    SYMM_EMU_ENTER(cuMemGetAllocationPropertiesFromHandle);
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    const Physical* physical = find_physical(e, handle);
    if (properties == nullptr || physical == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *properties = physical->properties;
    return CUDA_SUCCESS;
}

}  // namespace symm::emu
