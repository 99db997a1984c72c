#include "labs/03_ipc/multicast_range.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/device.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"
#include "labs/02_access/multicast_object.hpp"
#include "labs/03_ipc/memory_handle.hpp"

namespace symm {

MulticastRange::MulticastRange(Rank& rank, std::size_t bytes) {
    Bootstrap& bootstrap = rank.bootstrap();
    const CurrentContext current(rank.gpu());
    std::size_t unit = 0, size = 0;

    // 1. Object
    MulticastObject object;
    std::vector<UniqueFd> sent;
    bootstrap.together("multicast object", [&] {
        require_multicast(rank.device());
        unit = MulticastObject::granularity(rank.size());
        size = round_up(bytes, unit);
        if (rank.rank() == 0) {
            object = MulticastObject::create(rank.size(), size);
            sent.push_back(export_fd(object.handle()));
        }
    });
    const auto received = bootstrap.exchange("multicast object", sent);

    // 2. Team
    bootstrap.together("team", [&] {
        if (rank.rank() != 0) {
            object = MulticastObject(import_memory(received[0].at(0), size));
        }
        for (int p = 0; p < rank.rank(); ++p) {
            if (rank.device_of(p) == rank.device()) {
                throw std::runtime_error(fmt::format(
                    "ranks {} and {} share device {}: multicast needs a device for each rank", p,
                    rank.rank(), rank.device()));
            }
        }
        object.add(rank.device());
    });

    // 3. Memory
    bootstrap.together("bind", [&] {
        const PhysicalMemory memory = PhysicalMemory::create(
            device_memory(rank.device(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), size);
        own_ = AddressRange(size, unit);
        mapped_own_ = Mapping(own_.base(), size, memory);
        allow(own_.base(), size, std::vector{rank.device()});
        zero(own_.base(), size);
        // Not unbound: where this rank fails, kernels of its peers may still be on their way. It
        // stays bound until no rank of this process has the object mapped any more.
        (void)object.bind(rank.device(), memory).release();
    });

    // 4. Address
    bootstrap.together("map the object", [&] {
        all_ = AddressRange(size, unit);
        mapped_all_ = Mapping(all_.base(), size, object.handle());
        allow(all_.base(), size, std::vector{rank.device()});
    });
}

}  // namespace symm
