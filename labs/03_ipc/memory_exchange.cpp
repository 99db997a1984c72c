#include "labs/03_ipc/memory_exchange.hpp"

#include <algorithm>
#include <array>

#include "labs/03_ipc/memory_handle.hpp"

namespace symm {
namespace {

// File descriptors: the bootstrap sends them as SCM_RIGHTS.
auto exchange_handles(Bootstrap& bootstrap, const std::vector<UniqueFd>& sent) {
    return bootstrap.exchange("handles", sent);
}

// FABRIC: the handles are bytes like any others. allgather() takes values of one size: an array
// with room for the largest batch.
auto exchange_handles(Bootstrap& bootstrap, const std::vector<CUmemFabricHandle>& sent) {
    std::array<CUmemFabricHandle, kMaxDescriptors> local{};
    std::copy(sent.begin(), sent.end(), local.begin());
    return bootstrap.allgather("handles", local);
}

template <class Handle>
void exchange_as(Handle (*export_memory)(const PhysicalMemory&), Rank& rank,
                 const std::vector<PhysicalMemory>& local,
                 const std::vector<std::vector<std::uint64_t>>& sizes, const TakeSegment& take) {
    // A rank receives `batch` file descriptors from each rank. Together they are at most 128, well
    // below 1024, the usual limit of open files.
    constexpr std::size_t kOpenAtOnce = 128;
    const std::size_t batch =
        std::clamp<std::size_t>(kOpenAtOnce / sizes.size(), 1, kMaxDescriptors);
    std::size_t most = 0;
    for (const auto& of_rank : sizes) {
        most = std::max(most, of_rank.size());
    }
    for (std::size_t first = 0; first < most; first += batch) {
        std::vector<Handle> sent;
        rank.bootstrap().together("export", [&] {
            for (std::size_t i = first; i < std::min(first + batch, local.size()); ++i) {
                sent.push_back(export_memory(local[i]));
            }
        });
        const auto received = exchange_handles(rank.bootstrap(), sent);
        rank.bootstrap().together("import", [&] {
            for (std::size_t owner = 0; owner < sizes.size(); ++owner) {
                const std::size_t end = std::min(first + batch, sizes[owner].size());
                for (std::size_t i = first; i < end; ++i) {
                    if (static_cast<int>(owner) == rank.rank()) {
                        take(owner, local[i]);
                    } else {
                        take(owner, import_memory(received[owner].at(i - first), sizes[owner][i]));
                    }
                }
            }
        });
    }
}

}  // namespace

void exchange_memory(Rank& rank, CUmemAllocationHandleType kind,
                     const std::vector<PhysicalMemory>& local,
                     const std::vector<std::vector<std::uint64_t>>& sizes,
                     const TakeSegment& take) {
    if (kind == CU_MEM_HANDLE_TYPE_FABRIC) {
        exchange_as(export_fabric, rank, local, sizes, take);
    } else {
        exchange_as(export_fd, rank, local, sizes, take);
    }
}

}  // namespace symm
