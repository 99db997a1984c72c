#include "labs/04_shm_transport/host_memory/host_segment.hpp"

#include <cstring>
#include <utility>

#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"
#include "labs/03_ipc/memory_handle.hpp"

namespace symm {

HostSegment HostSegment::create(HostPath path, std::size_t bytes, std::span<const int> devices) {
    HostSegment segment(path);
    if (segment.is_posix()) {
        segment.file_ = SharedMemoryFile::create(bytes);
    } else {
        const CUmemAllocationProp properties = host_numa_memory(host_node_of(devices[0]));
        segment.memory_ =
            PhysicalMemory::create(properties, round_up(bytes, granularity(properties)));
    }
    segment.map(devices);
    // The manual does not promise zeros. Writing them also shows that the host has access.
    std::memset(segment.host(), 0, segment.size());
    return segment;
}

HostSegment HostSegment::attach(HostPath path, UniqueFd fd, std::size_t bytes,
                                std::span<const int> devices) {
    HostSegment segment(path);
    if (segment.is_posix()) {
        segment.file_ = SharedMemoryFile::attach(std::move(fd), bytes);
    } else {
        segment.memory_ = import_memory(fd, bytes);
    }
    segment.map(devices);
    return segment;
}

UniqueFd HostSegment::share() const {
    return is_posix() ? file_.fd().duplicate() : export_fd(memory_);
}

void HostSegment::map(std::span<const int> devices) {
    if (is_posix()) {
        registration_ = HostRegistration(devices[0], file_.data(), file_.size());
        return;
    }
    const std::size_t bytes = memory_.size();
    range_ = AddressRange(bytes);
    mapping_ = Mapping(range_.base(), bytes, memory_);
    allow(range_.base(), bytes, devices);
    allow_host(range_.base(), bytes, host_node_of(devices[0]));
}

}  // namespace symm
