#include "labs/03_ipc/symmetric_range.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/ranks/registry.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"
#include "labs/03_ipc/memory_exchange.hpp"
#include "labs/03_ipc/memory_handle.hpp"

namespace symm {

// Ranks that are threads share one Mapped, and each adds its own mappings.
struct SymmetricRange::Mapped {
    AddressRange range;
    std::vector<std::vector<Mapping>> mappings;  // by rank; unmapped before the range is freed
};

namespace {

// Step 1, new memory. Each segment is one cuMemCreate with a handle of its own.
std::vector<PhysicalMemory> create_segments(const CUmemAllocationProp& properties,
                                            std::size_t bytes) {
    const std::size_t unit = granularity(properties);
    const std::size_t most = segment_size(round_up(bytes, unit), unit);
    std::vector<PhysicalMemory> segments;
    for (std::size_t left = round_up(bytes, unit); left > 0; left -= segments.back().size()) {
        segments.push_back(PhysicalMemory::create(properties, std::min(most, left)));
    }
    return segments;
}

// The start of the segment that contains the pointer.
CUdeviceptr segment_of(CUdeviceptr pointer) {
    CUdeviceptr base = 0;
    const CUresult result = cuMemGetAddressRange(&base, nullptr, pointer);
    cu_check(result, "cuMemGetAddressRange({:#x}{})", pointer,
             result == CUDA_ERROR_NOT_FOUND
                 ? "; share memory that is mapped and accessible (cuMemCreate and cuMemMap, or "
                   "mem_alloc()), not host memory or a freed address"
                 : "");
    return base;
}

// Step 1, existing memory: the segments mapped at [begin, begin + bytes), in
// order. The last one may end after begin + bytes.
std::vector<PhysicalMemory> find_segments(CUdeviceptr begin, std::size_t bytes) {
    std::vector<PhysicalMemory> segments;
    for (std::size_t found = 0; found < bytes; found += segments.back().size()) {
        segments.push_back(PhysicalMemory::mapped_at(segment_of(begin + found)));
    }
    return segments;
}

// Step 2: a rank's description of its memory for the others. The sizes of its segments are sent
// separately.
struct Description {
    std::size_t bytes = 0;         // requested
    std::size_t granularity = 0;   // its device's
    unsigned long long kinds = 0;  // set of CUmemAllocationHandleType that all segments have
};

std::vector<std::vector<std::uint64_t>> exchange_sizes(
    Bootstrap& bootstrap, const std::vector<PhysicalMemory>& segments) {
    std::vector<std::uint64_t> local;
    for (const PhysicalMemory& segment : segments) {
        local.push_back(segment.size());
    }
    // In batches, until no rank sends a full one.
    constexpr std::size_t kBatch = kMaxContribution / sizeof(std::uint64_t);
    std::vector<std::vector<std::uint64_t>> all(static_cast<std::size_t>(bootstrap.size()));
    std::size_t most = kBatch;
    for (std::size_t first = 0; most == kBatch; first += kBatch) {
        const auto rest = std::span(local).subspan(std::min(first, local.size()));
        const auto batch = rest.first(std::min(kBatch, rest.size()));
        const auto gathered = bootstrap.allgather_bytes("segments", std::as_bytes(batch));
        most = 0;
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            const std::size_t count = gathered[rank].size() / sizeof(std::uint64_t);
            all[rank].resize(all[rank].size() + count);
            std::ranges::copy(gathered[rank],
                              std::as_writable_bytes(std::span(all[rank]).last(count)).begin());
            most = std::max(most, count);
        }
    }
    return all;
}

// Step 2: the distance from one rank's memory to the next has room for the largest. Each rank
// has the gathered descriptions of all ranks, so all compute the same or all throw.
std::size_t agreed_stride(const std::vector<Description>& descriptions,
                          const std::vector<std::vector<std::uint64_t>>& sizes) {
    std::size_t unit = 1;
    std::size_t longest = 0;
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
        if (descriptions[rank].bytes != descriptions[0].bytes) {
            throw std::invalid_argument(fmt::format(
                "rank {} asks for {} bytes and rank 0 for {}: all ranks of a symmetric range must "
                "ask for the same",
                rank, descriptions[rank].bytes, descriptions[0].bytes));
        }
        unit =
            std::max(unit, descriptions[rank].granularity);  // powers of two: the largest fits all
        longest = std::max(longest,
                           std::accumulate(sizes[rank].begin(), sizes[rank].end(), std::size_t{0}));
    }
    return round_up(longest, unit);
}

}  // namespace

SymmetricRange::SymmetricRange(Rank& rank, std::size_t bytes)
    : SymmetricRange(rank, std::nullopt, bytes) {}

SymmetricRange::SymmetricRange(Rank& rank, CUdeviceptr pointer, std::size_t bytes)
    : SymmetricRange(rank, std::optional(pointer), bytes) {}

SymmetricRange::SymmetricRange(Rank& rank, std::optional<CUdeviceptr> existing, std::size_t bytes)
    : bytes_(bytes), rank_(rank.rank()) {
    Bootstrap& bootstrap = rank.bootstrap();
    const auto me = static_cast<std::size_t>(rank_);
    const auto ranks = static_cast<std::size_t>(rank.size());

    // 1. Memory
    handles_ = rank.is_thread()
                   ? HandleChoice{CU_MEM_HANDLE_TYPE_NONE, "ranks are threads of one process"}
                   : agree_on_handle_kind(rank);
    std::vector<PhysicalMemory> segments;
    Description description;
    bootstrap.together("memory", [&] {
        if (bytes == 0) {
            throw std::invalid_argument("a symmetric range of 0 bytes: ask for at least 1");
        }
        // New memory is created for file descriptors too: if another rank brings memory without
        // FABRIC, step 2 falls back to them. Threads send no handles, and some systems (WSL) have
        // none.
        const CUmemAllocationProp properties = device_memory(
            rank.device(), rank.is_thread()
                               ? CU_MEM_HANDLE_TYPE_NONE
                               : handles_.kind | CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        if (existing) {
            const CUdeviceptr pointer = *existing;
            if (pointer == 0 || bytes > std::numeric_limits<CUdeviceptr>::max() - pointer) {
                throw std::invalid_argument(
                    fmt::format("there is no memory of {} bytes at {:#x}: pass the address of "
                                "memory that is mapped and accessible",
                                bytes, pointer));
            }
            const CurrentContext current(rank.gpu());  // cuMemGetAddressRange needs one
            lead_ = pointer - segment_of(pointer);
            segments = find_segments(pointer - lead_, lead_ + bytes);
        } else {
            segments = create_segments(properties, bytes);
        }
        description = {bytes, granularity(properties), properties.requestedHandleTypes};
        // Of the kinds that this rank can use, keep those that all its segments were created for.
        for (const PhysicalMemory& segment : segments) {
            description.kinds &= segment.properties().requestedHandleTypes;
        }
    });

    // 2. Descriptions
    const auto descriptions = bootstrap.allgather("descriptions", description);
    const auto sizes = exchange_sizes(bootstrap, segments);
    stride_ = agreed_stride(descriptions, sizes);
    for (const Description& other : descriptions) {
        if (handles_.kind == CU_MEM_HANDLE_TYPE_FABRIC &&
            (other.kinds & CU_MEM_HANDLE_TYPE_FABRIC) == 0) {
            handles_ = {CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                        "memory was created without FABRIC handles"};
        }
    }

    // 3. Addresses
    std::shared_ptr<Mapped> mapped;
    std::set<int> devices{rank.device()};  // whose kernels will use this process's mappings
    bootstrap.together("addresses", [&] {
        for (int peer = 0; peer < rank.size(); ++peer) {
            require_peer_access(rank, peer);
            if (rank.is_thread()) {
                devices.insert(rank.device_of(peer).value());
            }
        }
        if (!rank.is_thread() || me == 0) {
            mapped = std::make_shared<Mapped>();
            mapped->range = AddressRange(stride_ * ranks, description.granularity);
            mapped->mappings.resize(ranks);
        }
    });
    // Threads: rank 0 sends the range's number, not a pointer: if rank 0 fails and frees the range
    // meanwhile, the other ranks find nothing under the number. The entry exists until the end of
    // this constructor.
    const Registry::Entry entry(rank.is_thread() ? mapped : nullptr);
    if (rank.is_thread()) {
        const auto numbers = bootstrap.allgather("shared range", entry.number());
        mapped = std::static_pointer_cast<Mapped>(Registry::find(numbers[0]));
    }

    // 4. Mappings
    std::vector<CUdeviceptr> next(ranks);  // where each rank's next segment goes
    for (std::size_t owner = 0; owner < ranks && mapped; ++owner) {
        next[owner] = mapped->range.base() + owner * stride_;
    }
    const auto map = [&](std::size_t owner, const PhysicalMemory& segment) {
        mapped->mappings[owner].emplace_back(next[owner], segment.size(), segment);
        next[owner] += segment.size();
    };
    if (rank.is_thread()) {
        bootstrap.together("map", [&] {
            if (!mapped) {
                throw std::runtime_error("rank 0 has freed the shared range");
            }
            for (const PhysicalMemory& segment : segments) {
                map(me, segment);
            }
        });
    } else {
        exchange_memory(rank, handles_.kind, segments, sizes, map);
    }

    // 5. Access: one call for all segments of a rank, since each call takes time.
    const std::vector<int> users(devices.begin(), devices.end());
    bootstrap.together("access", [&] {
        for (std::size_t owner = 0; owner < ranks; ++owner) {
            const CUdeviceptr first = mapped->range.base() + owner * stride_;
            if (!rank.is_thread() || owner == me) {
                allow(first, next[owner] - first, users);
            }
        }
    });
    mapped_ = std::move(mapped);
    base_ = mapped_->range.base();
}

}  // namespace symm
