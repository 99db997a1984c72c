// Physical memory: cuMemCreate, cuMemRelease, and the calls that query it.

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

// The content of the page after the data, for a process that imports the memory.
struct Trailer {
    char magic[sizeof(kMagic)];
    CUmemAllocationProp properties;
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
    trailer.properties = physical.properties;
    return ::pwrite(physical.fd.get(), &trailer, sizeof(trailer),
                    static_cast<off_t>(physical.size)) == sizeof(trailer);
}

// False for any file that cuMemCreate did not make.
bool read_trailer(Physical& physical) {
    struct stat status {};
    if (::fstat(physical.fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size <= static_cast<off_t>(kPage)) {
        return false;
    }
    Trailer trailer{};
    const off_t size = status.st_size - static_cast<off_t>(kPage);
    physical.size = static_cast<std::size_t>(size);
    const bool read =
        ::pread(physical.fd.get(), &trailer, sizeof(trailer), size) == sizeof(trailer);
    physical.properties = trailer.properties;
    return read && std::memcmp(trailer.magic, kMagic, sizeof(kMagic)) == 0;
}

CUmemGenericAllocationHandle keep(Emulator& e, std::unique_ptr<Physical> physical) {
    const auto handle = physical->handle = e.new_handle();
    physical->references = 1;
    e.physicals[handle] = std::move(physical);
    return handle;
}

}  // namespace

UniqueFd new_memory_file(const char* name, std::size_t size) {
    UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
        return {};
    }
    // No process that receives it can change its size while others have it mapped.
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
    auto physical = std::make_unique<Physical>();
    physical->fd = std::move(fd);
    physical->imported = true;
    if (!read_trailer(*physical) || (physical->properties.requestedHandleTypes & type) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (const auto& [known_handle, known] : e.physicals) {
        if (identity_of(known->fd.get()) == identity_of(physical->fd.get())) {
            ++known->references;  // exported by this process, or imported before
            *handle = known_handle;
            return CUDA_SUCCESS;
        }
    }
    // The process that made the memory may see more devices than this one.
    SYMM_EMU_TRY(check_location(physical->properties.location));
    *handle = keep(e, std::move(physical));
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option) {
    SYMM_EMU_ENTER(cuMemGetAllocationGranularity);
    // The properties are not checked: a real driver leaves that to cuMemCreate.
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
    if (handle == nullptr || flags != 0 || size == 0 || size % kGranularity != 0) {
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
    // Host memory is not counted; this only refuses absurd sizes.
    const std::size_t room = owner == kHost ? e.configuration.memory * 16
                                            : e.configuration.memory - e.devices[owner].used;
    if (size > room) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->fd = new_memory_file("symm-physical", size + kPage);
    if (!physical->fd || !write_trailer(*physical)) {
        return shortage("memfd_create", errno);
    }
    if (owner != kHost) {
        e.devices[owner].used += size;
    }
    *handle = keep(e, std::move(physical));
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
