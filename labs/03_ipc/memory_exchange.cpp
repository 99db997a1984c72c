#include "labs/03_ipc/memory_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "labs/03_ipc/exported_handle.hpp"
#include "labs/03_ipc/imported_memory.hpp"

namespace symm {
namespace {

// File descriptors: the bootstrap sends them as SCM_RIGHTS.
struct ByFd {
    using Handle = UniqueFd;
    static Handle export_memory(const PhysicalMemory& memory) { return export_fd(memory); }
    static PhysicalMemory import_memory(const Handle& handle, std::size_t bytes) {
        return import_fd(handle, bytes);
    }
    static auto exchange(Bootstrap& bootstrap, const std::vector<Handle>& sent, Deadline deadline) {
        return bootstrap.exchange("handles", sent, deadline);
    }
};

// FABRIC: the handles are bytes like any others.
struct ByFabric {
    using Handle = CUmemFabricHandle;
    static Handle export_memory(const PhysicalMemory& memory) { return export_fabric(memory); }
    static PhysicalMemory import_memory(const Handle& handle, std::size_t bytes) {
        return import_fabric(handle, bytes);
    }
    static auto exchange(Bootstrap& bootstrap, const std::vector<Handle>& sent, Deadline deadline) {
        std::vector<std::vector<Handle>> all;
        for (const auto& bytes :
             bootstrap.allgather_bytes("handles", std::as_bytes(std::span(sent)), deadline)) {
            auto& handles = all.emplace_back(bytes.size() / sizeof(Handle));
            std::memcpy(handles.data(), bytes.data(), handles.size() * sizeof(Handle));
        }
        return all;
    }
};

template <class Kind>
void exchange_by(Rank& rank, const std::vector<PhysicalMemory>& local,
                 const std::vector<RangeDescriptor>& descriptors, const TakeSegment& take,
                 Deadline deadline) {
    constexpr std::size_t kOpenAtOnce = 128;  // of 1024, which is a usual limit
    const std::size_t batch =
        std::clamp<std::size_t>(kOpenAtOnce / descriptors.size(), 1, kMaxDescriptors);
    std::size_t most = 0;
    for (const RangeDescriptor& descriptor : descriptors) {
        most = std::max(most, descriptor.segments.size());
    }
    for (std::size_t first = 0; first < most; first += batch) {
        const auto in_batch = [&](std::size_t segments) {
            return segments > first ? std::min(segments - first, batch) : 0;
        };
        std::vector<typename Kind::Handle> sent;
        rank.bootstrap().together(
            "export",
            [&] {
                for (std::size_t i = 0; i < in_batch(local.size()); ++i) {
                    sent.push_back(Kind::export_memory(local[first + i]));
                }
            },
            deadline);
        const auto received = Kind::exchange(rank.bootstrap(), sent, deadline);
        rank.bootstrap().together(
            "import",
            [&] {
                for (std::size_t owner = 0; owner < descriptors.size(); ++owner) {
                    const auto& sizes = descriptors[owner].segments;
                    if (received[owner].size() != in_batch(sizes.size())) {
                        throw std::runtime_error(fmt::format(
                            "rank {} has {} segments, and sent {} handles for those from {} on",
                            owner, sizes.size(), received[owner].size(), first));
                    }
                    for (std::size_t i = 0; i < received[owner].size(); ++i) {
                        if (static_cast<int>(owner) == rank.rank()) {
                            take(owner, local[first + i]);
                        } else {
                            take(owner, Kind::import_memory(received[owner][i], sizes[first + i]));
                        }
                    }
                }
            },
            deadline);
    }
}

}  // namespace

void exchange_memory(Rank& rank, CUmemAllocationHandleType kind,
                     const std::vector<PhysicalMemory>& local,
                     const std::vector<RangeDescriptor>& descriptors, const TakeSegment& take,
                     Deadline deadline) {
    if (kind == CU_MEM_HANDLE_TYPE_FABRIC) {
        exchange_by<ByFabric>(rank, local, descriptors, take, deadline);
    } else {
        exchange_by<ByFd>(rank, local, descriptors, take, deadline);
    }
}

}  // namespace symm
