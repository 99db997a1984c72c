#include "labs/03_ipc/shared_array.hpp"

#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"
#include "labs/03_ipc/exported_handle.hpp"
#include "labs/03_ipc/imported_memory.hpp"

namespace symm {

SharedArray::SharedArray(Rank& rank, int root, std::size_t bytes, Deadline deadline)
    : bytes_(bytes) {
    Bootstrap& bootstrap = rank.bootstrap();
    const auto root_index = static_cast<std::size_t>(root);
    PhysicalMemory memory;
    std::vector<UniqueFd> sent;  // by the root only
    std::size_t size = 0;
    bootstrap.together(
        "export",
        [&] {
            require_peer_access(rank.device(), rank.device_of(root).value_or(-1));
            if (rank.rank() == root) {
                const CUmemAllocationProp properties = device_memory(rank.device());
                size = round_up(bytes, granularity(properties));
                memory = PhysicalMemory::create(properties, size);
                sent.push_back(export_fd(memory));
            }
        },
        deadline);
    size = bootstrap.allgather("size", size, deadline)[root_index];
    const auto received = bootstrap.exchange("file descriptor", sent, deadline);
    bootstrap.together(
        "map",
        [&] {
            const UniqueFd& fd = received[root_index].at(0);
            if (rank.rank() != root) {
                memory = import_fd(fd, size);
            }
            range_ = AddressRange(size);
            mapping_ = Mapping(range_.base(), size, memory);
            const int device = rank.device();
            allow(range_.base(), size, std::span(&device, 1));
            story_ = fmt::format("{} file descriptor {}, mapped at {:#x}",
                                 rank.rank() == root ? "exported as" : "imported from",
                                 rank.rank() == root ? sent[0].get() : fd.get(), range_.base());
        },
        deadline);
    // File descriptors and handles are given back here. From now on the mappings keep the memory.
}

}  // namespace symm
