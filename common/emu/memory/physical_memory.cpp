// Physical memory: cuMemCreate, cuMemRelease, and the calls that query it.

#include "common/emu/memory/physical_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/emu/memory/multicast.hpp"
#include "common/sys/pages.hpp"

namespace symm::emu {
namespace {

constexpr char kMagic[16] = "symm physical 1";
constexpr std::size_t kTeamBytes = sizeof(TeamState);

// The beginning of the bytes after the data, for a process that imports the memory.
struct Trailer {
    char magic[sizeof(kMagic)];
    CUmemAllocationProp properties;
    bool is_object;  ///< A multicast object: the file begins with its team.
};

void check_location(const CUmemLocation& location) {
    switch (location.type) {
        case CU_MEM_LOCATION_TYPE_DEVICE:
            return check_device(location.id);
        case CU_MEM_LOCATION_TYPE_HOST:
            return;
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:  // one node, numbered 0
            return refuse_if(location.id != 0, CUDA_ERROR_INVALID_DEVICE);
        default:
            refuse(CUDA_ERROR_INVALID_VALUE);
    }
}

void check_properties(const CUmemAllocationProp* properties) {
    constexpr unsigned kKnownTypes =
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
    refuse_if(properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
              (static_cast<unsigned>(properties->requestedHandleTypes) & ~kKnownTypes) != 0);
    // Only memory of a NUMA node can be shared.
    refuse_if(properties->location.type == CU_MEM_LOCATION_TYPE_HOST &&
              properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE);
    check_location(properties->location);
}

bool write_trailer(const Physical& physical) {
    Trailer trailer{};
    std::memcpy(trailer.magic, kMagic, sizeof(kMagic));
    trailer.properties = physical.properties;
    trailer.is_object = physical.team != nullptr;
    const std::size_t at = trailer.is_object ? kTeamBytes : physical.size;
    return ::pwrite(physical.fd.get(), &trailer, sizeof(trailer), static_cast<off_t>(at)) ==
           sizeof(trailer);
}

// False for any file that cuMemCreate did not make.
bool read_trailer(Physical& physical) {
    struct stat status {};
    if (::fstat(physical.fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size <= static_cast<off_t>(kTrailerBytes)) {
        return false;
    }
    Trailer trailer{};
    const off_t size = status.st_size - static_cast<off_t>(kTrailerBytes);
    physical.size = static_cast<std::size_t>(size);
    const bool read =
        ::pread(physical.fd.get(), &trailer, sizeof(trailer), size) == sizeof(trailer);
    physical.properties = trailer.properties;
    if (!read || std::memcmp(trailer.magic, kMagic, sizeof(kMagic)) != 0) {
        return false;
    }
    if (trailer.is_object) {
        physical.team = std::make_shared<Team>(physical.fd.get());
        physical.size = (*physical.team)->properties.size;
    }
    return true;
}

CUmemGenericAllocationHandle keep(Emulator& e, std::unique_ptr<Physical> physical) {
    const auto handle = physical->handle = e.new_handle();
    physical->file = identity_of(physical->fd.get());
    physical->references = 1;
    e.physicals[handle] = std::move(physical);
    return handle;
}

}  // namespace

UniqueFd new_memory_file(const char* name, std::size_t size) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur) {
        refuse(shortage("memfd_create", EFBIG));  // ftruncate() would end the program by a signal
    }
    UniqueFd fd =
        beside_standard_streams(UniqueFd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
        refuse(shortage("memfd_create", errno));
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

std::size_t used_on(const Emulator& e, int device) {
    std::size_t used = 0;
    for (const auto& [handle, physical] : e.physicals) {
        used += physical->owner() == device && !physical->imported ? physical->size : 0;
    }
    for (const auto& [base, memory] : e.plain) {
        used += memory.kind == PlainMemory::Kind::kDevice && memory.device == device
                    ? whole_pages(memory.size)
                    : 0;
    }
    return used;
}

void check_room(const Emulator& e, int owner, std::size_t size) {
    const std::size_t memory = e.configuration.memory;
    // Host memory is not counted; this only refuses absurd sizes.
    refuse_if(size > (owner == kHost ? memory * 16 : memory - used_on(e, owner)),
              CUDA_ERROR_OUT_OF_MEMORY);
}

Physical& find_physical(const Emulator& e, CUmemGenericAllocationHandle handle) {
    const auto found = e.physicals.find(handle);
    refuse_if(found == e.physicals.end() || found->second->references == 0);
    return *found->second;
}

void drop_if_unused(Emulator& e, const Physical& physical) {
    if (physical.references == 0 && physical.mappings == 0) {
        if (physical.team != nullptr) {
            physical.team->unbind_all(e);
        }
        e.physicals.erase(physical.handle);
    }
}

CUmemGenericAllocationHandle import_physical(Emulator& e, UniqueFd fd,
                                             CUmemAllocationHandleType type) {
    auto physical = std::make_unique<Physical>();
    physical->fd = std::move(fd);
    physical->imported = true;
    refuse_if(!read_trailer(*physical) || (physical->properties.requestedHandleTypes & type) == 0);
    for (const auto& [handle, known] : e.physicals) {
        if (known->file == identity_of(physical->fd.get())) {
            ++known->references;  // exported by this process, or imported before
            return handle;
        }
    }
    // The process that made the memory may see more devices than this one.
    if (physical->team == nullptr) {
        check_location(physical->properties.location);
    }
    return keep(e, std::move(physical));
}

CUmemGenericAllocationHandle keep_object(Emulator& e, const CUmulticastObjectProp& properties) {
    auto object = std::make_unique<Physical>();
    object->size = properties.size;
    object->properties.requestedHandleTypes =
        static_cast<CUmemAllocationHandleType>(properties.handleTypes);
    object->fd = new_memory_file("symm-multicast", kTeamBytes + kTrailerBytes);
    object->team = std::make_shared<Team>(object->fd.get());
    (*object->team)->properties = properties;
    if (!write_trailer(*object)) {
        refuse(shortage("memfd_create", errno));
    }
    return keep(e, std::move(object));
}

void cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                   CUmemAllocationGranularity_flags option) {
    // The properties are not checked: a real driver leaves that to cuMemCreate.
    refuse_if(granularity == nullptr || properties == nullptr ||
              (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
               option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    *granularity = kGranularity;
}

void cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                 const CUmemAllocationProp* properties, unsigned long long flags) {
    refuse_if(handle == nullptr || flags != 0 || size == 0 || size % kGranularity != 0);
    check_properties(properties);
    refuse_if((properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0 &&
                  !emulator().configuration.fabric,
              CUDA_ERROR_NOT_PERMITTED);
    auto physical = std::make_unique<Physical>();
    physical->size = size;
    physical->properties = *properties;
    const Changing e;
    check_room(*e, physical->owner(), size);
    physical->fd = new_memory_file("symm-physical", size + kTrailerBytes);
    if (!write_trailer(*physical)) {
        refuse(shortage("memfd_create", errno));
    }
    *handle = keep(*e, std::move(physical));
}

void cuMemRelease(CUmemGenericAllocationHandle handle) {
    const Changing e;
    Physical& physical = find_physical(*e, handle);
    --physical.references;
    drop_if_unused(*e, physical);
}

void cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                            CUmemGenericAllocationHandle handle) {
    const Reading e;
    const Physical& physical = find_physical(*e, handle);
    refuse_if(properties == nullptr || physical.team != nullptr);
    *properties = physical.properties;
}

}  // namespace symm::emu
