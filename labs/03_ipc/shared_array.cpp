#include "labs/03_ipc/shared_array.hpp"

#include <fmt/core.h>

#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"
#include "labs/03_ipc/memory_handle.hpp"

namespace symm {

SharedArray::SharedArray(Rank& rank, int root, std::size_t bytes) {
    Bootstrap& bootstrap = rank.bootstrap();
    const bool is_root = rank.rank() == root;
    const auto root_index = static_cast<std::size_t>(root);
    PhysicalMemory memory;
    std::vector<UniqueFd> sent;  // by the root only
    bootstrap.together("export", [&] {
        require_peer_access(rank, root);
        if (is_root) {
            const CUmemAllocationProp properties = device_memory(rank.device());
            memory = PhysicalMemory::create(properties, round_up(bytes, granularity(properties)));
            sent.push_back(export_fd(memory));
        }
    });
    // The handle does not contain the size.
    const std::size_t size = bootstrap.allgather("size", memory.size())[root_index];
    const auto received = bootstrap.exchange("file descriptor", sent);
    bootstrap.together("map", [&] {
        const UniqueFd& fd = received[root_index].at(0);
        if (!is_root) {  // the root receives its own too, and does not need it
            memory = import_memory(fd, size);
        }
        range_ = AddressRange(size);
        mapping_ = Mapping(range_.base(), size, memory);
        const int device = rank.device();
        allow(range_.base(), size, std::span(&device, 1));
        story_ = fmt::format("{} file descriptor {}, mapped at {:#x}",
                             is_root ? "exported as" : "imported from",
                             is_root ? sent[0].get() : fd.get(), range_.base());
    });
    // File descriptors and handles are released here. From now on the mappings keep the memory.
}

}  // namespace symm
