// cuMulticast*: what the CUDA Driver API manual says of them, sentence by sentence. No real driver
// was asked (docs/DESIGN.md).

#include "common/emu/memory/multicast.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <tuple>
#include <utility>

#include "common/emu/log.hpp"
#include "common/emu/memory/address_space.hpp"
#include "common/sys/deadline.hpp"

namespace symm::emu {
namespace {

bool is_whole(std::size_t bytes) {
    return bytes % kGranularity == 0;
}

void check_properties(const CUmulticastObjectProp* properties) {
    constexpr unsigned long long kKnownTypes =
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
    refuse_if(properties == nullptr || properties->numDevices == 0 ||
              properties->numDevices > static_cast<unsigned>(kMaxDevices) ||
              properties->flags != 0 || (properties->handleTypes & ~kKnownTypes) != 0);
    refuse_if(!emulator().configuration.multicast, CUDA_ERROR_NOT_SUPPORTED);
}

Physical& find_object(const Emulator& e, CUmemGenericAllocationHandle handle) {
    Physical& object = find_physical(e, handle);
    refuse_if(object.team == nullptr);
    return object;
}

void bind(CUmemGenericAllocationHandle handle, std::size_t offset, std::size_t size,
          unsigned long long flags, const auto& find_memory) {
    refuse_if(flags != 0 || size == 0 || !is_whole(size) || !is_whole(offset));
    wait_for_team(handle);
    const Changing e;
    const Physical& object = find_object(*e, handle);
    const auto [memory, memory_offset] = find_memory(*e);
    refuse_if(memory->team != nullptr || !is_whole(memory_offset));
    refuse_if(offset > object.size || size > object.size - offset || memory_offset > memory->size ||
              size > memory->size - memory_offset);
    refuse_if(!memory->on_device() || !object.team->has(memory->owner()),
              CUDA_ERROR_INVALID_DEVICE);
    // Externally shareable and imported objects take only shareable memory.
    refuse_if(object.properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE &&
              memory->properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE);
    object.team->bind(*memory, memory_offset, offset, size);
}

bool overlap(const Binding& a, int device, std::size_t offset, std::size_t size) {
    return a.device == device && a.offset < offset + size && offset < a.offset + a.size;
}

}  // namespace

void wait_for_team(CUmemGenericAllocationHandle handle) {
    const Deadline deadline = Deadline::standard();
    const auto added = [&] {
        const Reading e;
        const Team* const team = find_physical(*e, handle).team.get();
        return team == nullptr
                   ? std::pair(0, 0)
                   : std::pair((*team)->added(), static_cast<int>((*team)->properties.numDevices));
    };
    for (auto [now, all] = added(); now < all; std::tie(now, all) = added()) {
        if (deadline.passed()) {
            say("waited {:.3g} s for the devices of a multicast object: {} of {} were added. No "
                "memory can be bound, and nothing mapped, before cuMulticastAddDevice was called "
                "for each",
                deadline.seconds(), now, all);
            refuse(CUDA_ERROR_TIMEOUT);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

Team::Team(int fd) {
    void* const pages =
        ::mmap(nullptr, sizeof(TeamState), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (pages == MAP_FAILED) {
        refuse(shortage("mmap", errno));
    }
    state_ = static_cast<TeamState*>(pages);
}

Team::~Team() {
    ::munmap(state_, sizeof(TeamState));
    for (const auto& [file, opened] : opened_) {
        ::munmap(opened.pages, opened.size);
    }
}

void Team::bind(Physical& memory, std::size_t memory_offset, std::size_t offset, std::size_t size) {
    for (const Binding& other : state_->bindings) {
        refuse_if(other.state.load(std::memory_order_acquire) == Binding::kBound &&
                  overlap(other, memory.owner(), offset, size));
    }
    for (std::size_t i = 0; i < state_->bindings.size(); ++i) {
        Binding& binding = state_->bindings[i];
        int expected = Binding::kFree;
        if (!binding.state.compare_exchange_strong(expected, Binding::kChanging)) {
            continue;
        }
        binding.device = memory.owner();
        binding.offset = offset;
        binding.size = size;
        binding.memory = memory.file;
        binding.memory_offset = memory_offset;
        binding.process = ::getpid();
        binding.fd = memory.fd.get();
        mine_[i] = &memory;
        ++memory.mappings;
        ++memory.bindings;
        binding.state.store(Binding::kBound, std::memory_order_release);
        return;
    }
    refuse(CUDA_ERROR_OUT_OF_MEMORY);
}

void Team::free(Emulator& e, std::size_t number) {
    Physical& memory = *mine_.at(number);
    mine_.erase(number);
    state_->bindings.at(number).state.store(Binding::kFree, std::memory_order_release);
    --memory.mappings;
    --memory.bindings;
    drop_if_unused(e, memory);
}

void Team::unbind(Emulator& e, int device, std::size_t offset, std::size_t size) {
    for (const auto& [number, memory] : mine_) {
        const Binding& binding = state_->bindings.at(number);
        if (binding.device == device && binding.offset == offset && binding.size == size) {
            return free(e, number);
        }
    }
    refuse(CUDA_ERROR_INVALID_VALUE);
}

void Team::unbind_all(Emulator& e) {
    while (!mine_.empty()) {
        free(e, mine_.begin()->first);
    }
}

char* Team::memory_of(const Emulator& e, const Binding& binding) {
    // A mapping of memory that this process has not bound is open only to those who have a right.
    for (const auto& [base, mapping] : e.mappings) {
        if (mapping.physical->bindings > 0 && mapping.physical->file == binding.memory &&
            binding.memory_offset + binding.size <= mapping.size) {
            return static_cast<char*>(at(base));
        }
    }
    const std::lock_guard lock(mutex_);
    Opened& opened = opened_[binding.memory.inode];
    if (opened.pages == nullptr) {
        const std::string path = fmt::format("/proc/{}/fd/{}", binding.process, binding.fd);
        const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        if (!fd || identity_of(fd.get()) != binding.memory) {
            return nullptr;
        }
        struct stat file {};  // all of it: another part of the memory may be bound, too
        if (::fstat(fd.get(), &file) != 0) {
            return nullptr;
        }
        opened.size = static_cast<std::size_t>(file.st_size);
        void* const pages =
            ::mmap(nullptr, opened.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
        opened.pages = pages == MAP_FAILED ? nullptr : pages;
    }
    return static_cast<char*>(opened.pages);
}

simt::MulticastCopies Team::copies_at(const Emulator& e, std::size_t offset) {
    simt::MulticastCopies copies{};
    for (const Binding& binding : state_->bindings) {
        if (binding.state.load(std::memory_order_acquire) != Binding::kBound ||
            offset - binding.offset >= binding.size) {
            continue;
        }
        char* const memory = memory_of(e, binding);
        if (memory == nullptr || copies.count == simt::MulticastCopies::kMost) {
            return {};
        }
        copies.at[copies.count++] = memory + binding.memory_offset + (offset - binding.offset);
    }
    return copies.count == state_->properties.numDevices ? copies : simt::MulticastCopies{};
}

simt::MulticastCopies copies_of(int device, const void* address, simt::SwitchAccess access) {
    const Reading e;
    const auto pointer = reinterpret_cast<CUdeviceptr>(address);
    const auto mapping = entry_at(e->mappings, pointer);
    const int needed = access == simt::SwitchAccess::kLoad ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                           : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (mapping == e->mappings.end() || mapping->second.physical->team == nullptr ||
        mapping->second.rights.at(static_cast<std::size_t>(device)) < needed) {
        return {};
    }
    return mapping->second.physical->team->copies_at(*e, pointer - mapping->first);
}

void cuMulticastGetGranularity(size_t* granularity, const CUmulticastObjectProp* properties,
                               CUmulticastGranularity_flags option) {
    refuse_if(granularity == nullptr || (option != CU_MULTICAST_GRANULARITY_MINIMUM &&
                                         option != CU_MULTICAST_GRANULARITY_RECOMMENDED));
    check_properties(properties);
    *granularity = kGranularity;
}

void cuMulticastCreate(CUmemGenericAllocationHandle* handle,
                       const CUmulticastObjectProp* properties) {
    refuse_if(handle == nullptr);
    check_properties(properties);
    refuse_if(properties->size == 0 || !is_whole(properties->size));
    const Changing e;
    *handle = keep_object(*e, *properties);
}

void cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device) {
    check_device(device);
    const Reading e;
    const Team& team = *find_object(*e, handle).team;
    const std::uint32_t bit = 1U << static_cast<unsigned>(device);
    std::uint32_t before = team->devices.load();
    do {
        refuse_if((before & bit) != 0 || team->is_complete());
    } while (!team->devices.compare_exchange_weak(before, before | bit));
}

void cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
                        CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                        unsigned long long flags) {
    bind(handle, offset, size, flags,
         [&](Emulator& e) { return std::pair(&find_physical(e, memory), memory_offset); });
}

void cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr pointer,
                         size_t size, unsigned long long flags) {
    bind(handle, offset, size, flags, [&](Emulator& e) {
        const auto mapping = entry_at(e.mappings, pointer, size);
        refuse_if(mapping == e.mappings.end());
        return std::pair(mapping->second.physical, pointer - mapping->first);
    });
}

void cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset,
                       size_t size) {
    check_device(device);
    const Changing e;
    find_object(*e, handle).team->unbind(*e, device, offset, size);
}

}  // namespace symm::emu
