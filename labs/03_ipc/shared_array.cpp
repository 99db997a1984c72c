#include "labs/03_ipc/shared_array.hpp"

#include <stdexcept>

#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"
#include "labs/03_ipc/handle.hpp"
#include "labs/03_ipc/peer_access.hpp"

namespace symm {

SharedArray::SharedArray(Rank& rank, int root, std::size_t bytes, Deadline deadline)
    : bytes_(bytes) {
    Bootstrap& meeting = rank.bootstrap();
    const bool is_root = rank.rank() == root;
    PhysicalMemory memory;
    std::vector<UniqueFd> mine;  // the root's one descriptor; the others give none
    std::size_t size = 0;
    const auto devices = meeting.allgather("devices", rank.device(), deadline);
    meeting.together(
        "export",
        [&] {
            require_peer_access(rank.device(), devices.at(static_cast<std::size_t>(root)));
            if (is_root) {
                const CUmemAllocationProp properties = device_memory(rank.device());
                memory =
                    PhysicalMemory::create(properties, round_up(bytes, granularity(properties)));
                mine.push_back(export_descriptor(memory));
                size = memory.size();
            }
        },
        deadline);
    // The size is no part of the handle: it has to be sent beside it.
    size = meeting.allgather("size", size, deadline).at(static_cast<std::size_t>(root));
    const auto all = meeting.exchange("descriptor", mine, deadline);
    meeting.together(
        "map",
        [&] {
            const UniqueFd& arrived = all.at(static_cast<std::size_t>(root)).at(0);
            if (!is_root) {
                memory = import_descriptor(arrived, size);
            }
            range_ = AddressRange(size);
            mapping_ = Mapping(range_.base(), size, memory);
            const int device = rank.device();
            allow(range_.base(), size, std::span(&device, 1));
            story_ = is_root ? fmt::format("exported as descriptor {}, mapped at {:#x}",
                                           mine[0].get(), range_.base())
                             : fmt::format("imported from descriptor {}, mapped at {:#x}",
                                           arrived.get(), range_.base());
        },
        deadline);
    // Descriptors and handles go here: from now on the mapping alone keeps the memory.
}

}  // namespace symm
