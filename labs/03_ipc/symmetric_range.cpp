#include "labs/03_ipc/symmetric_range.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"
#include "labs/03_ipc/handle.hpp"
#include "labs/03_ipc/peer_access.hpp"
#include "labs/03_ipc/range_descriptor.hpp"
#include "labs/03_ipc/registry.hpp"

namespace symm {

// In thread mode all ranks own one of these together, and each fills its own place.
struct SymmetricRange::Owned {
    AddressRange range;
    std::vector<std::vector<Mapping>> mappings;  // by rank; before the range goes, these do
};

namespace {

using Segments = std::vector<PhysicalMemory>;

// The segments that stand behind [pointer, pointer + bytes), in order: each mapping is one, and has
// a handle of its own.
Segments segments_of(CUdeviceptr pointer, std::size_t bytes) {
    Segments segments;
    for (std::size_t covered = 0; covered < bytes; covered += segments.back().size()) {
        CUdeviceptr base = 0;
        std::size_t size = 0;
        cu_check(cuMemGetAddressRange(&base, &size, pointer + covered),
                 "cuMemGetAddressRange({:#x})", pointer + covered);
        if (base != pointer + covered) {
            throw std::invalid_argument(fmt::format(
                "{:#x} lies {} bytes inside an allocation: give the address where it starts",
                pointer, pointer + covered - base));
        }
        segments.push_back(PhysicalMemory::mapped_at(base));
    }
    return segments;
}

// Which devices' kernels will use this process's view.
std::vector<int> devices_of(const Rank& rank, const std::vector<RangeDescriptor>& offers) {
    std::set<int> devices{rank.device()};
    for (const RangeDescriptor& offer : offers) {
        const int device = static_cast<int>(offer.device);
        if (rank.is_thread()) {
            devices.insert(device);
        }
        require_peer_access(rank.device(), device);
    }
    return {devices.begin(), devices.end()};
}

// Hands every rank's memory to every other, a batch of segments at a time, so that many ranks with
// many segments need few descriptors open at once. take(rank, segment) is called for each.
template <class Take>
void exchange_memory(Rank& rank, const Segments& mine, const std::vector<RangeDescriptor>& offers,
                     CUmemAllocationHandleType kind, Deadline deadline, Take&& take) {
    constexpr std::size_t kOpenAtOnce = 128;
    const std::size_t batch =
        std::clamp<std::size_t>(kOpenAtOnce / offers.size(), 1, kMaxDescriptors);
    std::size_t most = 0;
    for (const RangeDescriptor& offer : offers) {
        most = std::max(most, offer.segments.size());
    }
    Bootstrap& meeting = rank.bootstrap();
    for (std::size_t first = 0; first < most; first += batch) {
        const std::size_t end = std::min(mine.size(), first + batch);
        std::vector<UniqueFd> descriptors;
        std::vector<CUmemFabricHandle> fabric;
        meeting.together(
            "export",
            [&] {
                for (std::size_t i = first; i < end; ++i) {
                    if (kind == CU_MEM_HANDLE_TYPE_FABRIC) {
                        fabric.push_back(export_fabric(mine[i]));
                    } else {
                        descriptors.push_back(export_descriptor(mine[i]));
                    }
                }
            },
            deadline);
        std::vector<std::vector<UniqueFd>> all_descriptors;
        std::vector<std::vector<std::byte>> all_fabric;
        if (kind == CU_MEM_HANDLE_TYPE_FABRIC) {
            all_fabric =
                meeting.gather_bytes("handles", std::as_bytes(std::span(fabric)), deadline);
        } else {
            all_descriptors = meeting.exchange("handles", descriptors, deadline);
        }
        meeting.together(
            "import",
            [&] {
                for (std::size_t from = 0; from < offers.size(); ++from) {
                    const auto& sizes = offers[from].segments;
                    const std::size_t last = std::min(sizes.size(), first + batch);
                    const std::size_t expected = last > first ? last - first : 0;
                    const std::size_t arrived =
                        kind == CU_MEM_HANDLE_TYPE_FABRIC
                            ? all_fabric[from].size() / sizeof(CUmemFabricHandle)
                            : all_descriptors[from].size();
                    if (arrived != expected) {
                        throw std::runtime_error(
                            fmt::format("rank {} announced {} segments, and sent {} handles for "
                                        "those from {} on",
                                        from, sizes.size(), arrived, first));
                    }
                    for (std::size_t i = first; i < last; ++i) {
                        if (static_cast<int>(from) == rank.rank()) {
                            take(from, mine[i]);
                        } else if (kind == CU_MEM_HANDLE_TYPE_FABRIC) {
                            CUmemFabricHandle handle{};
                            const auto bytes = std::span(all_fabric[from]);
                            std::memcpy(
                                &handle,
                                bytes.subspan((i - first) * sizeof(handle), sizeof(handle)).data(),
                                sizeof(handle));
                            take(from, import_fabric(handle, sizes[i]));
                        } else {
                            take(from,
                                 import_descriptor(all_descriptors[from][i - first], sizes[i]));
                        }
                    }
                }
            },
            deadline);
    }
}

}  // namespace

SymmetricRange::SymmetricRange(SymmetricRange&& other) noexcept {
    *this = std::move(other);
}

SymmetricRange& SymmetricRange::operator=(SymmetricRange&& other) noexcept {
    std::swap(owned_, other.owned_);
    std::swap(handles_, other.handles_);
    std::swap(base_, other.base_);
    std::swap(stride_, other.stride_);
    std::swap(bytes_, other.bytes_);
    std::swap(rank_, other.rank_);
    std::swap(ranks_, other.ranks_);
    return *this;
}

SymmetricRange::~SymmetricRange() = default;

SymmetricRange::SymmetricRange(Rank& rank, std::size_t bytes, Deadline deadline) : bytes_(bytes) {
    build(rank, 0, deadline);
}

SymmetricRange::SymmetricRange(Rank& rank, CUdeviceptr pointer, std::size_t bytes,
                               Deadline deadline)
    : bytes_(bytes) {
    build(rank, pointer, deadline);
}

void SymmetricRange::build(Rank& rank, CUdeviceptr pointer, Deadline deadline) {
    Bootstrap& meeting = rank.bootstrap();
    const auto me = static_cast<std::size_t>(rank.rank());
    const auto ranks = static_cast<std::size_t>(rank.size());

    // 1. Memory: new, or what stands behind the pointer.
    handles_ = rank.is_thread()
                   ? HandleChoice{CU_MEM_HANDLE_TYPE_NONE, "ranks are threads of one process"}
                   : agree_on_handle_kind(rank, deadline);
    Segments mine;
    RangeDescriptor offer;
    std::vector<std::byte> packed_offer;
    meeting.together(
        "memory",
        [&] {
            if (bytes_ == 0) {
                throw std::invalid_argument("a symmetric range of 0 bytes: ask for at least 1");
            }
            // Descriptors always work, so memory can have them whatever the choice is.
            const CUmemAllocationProp properties = device_memory(
                rank.device(), handles_.kind | CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
            offer = {bytes_,
                     granularity(properties),
                     rank.device(),
                     properties.requestedHandleTypes,
                     {}};
            if (pointer != 0) {
                mine = segments_of(pointer, bytes_);
                for (const PhysicalMemory& segment : mine) {
                    offer.kinds &= segment.properties().requestedHandleTypes;
                }
            } else {
                const std::size_t total = round_up(bytes_, offer.unit);
                const std::size_t piece = segment_size(total, offer.unit);
                for (std::size_t made = 0; made < total; made += mine.back().size()) {
                    mine.push_back(
                        PhysicalMemory::create(properties, std::min(piece, total - made)));
                }
            }
            for (const PhysicalMemory& segment : mine) {
                offer.segments.push_back(segment.size());
            }
            packed_offer = pack(offer);
        },
        deadline);

    // 2. Terms: the same stride for all, and a kind of handle that all memory has.
    std::vector<RangeDescriptor> offers;
    for (const auto& packed : meeting.gather_bytes("terms", packed_offer, deadline)) {
        offers.push_back(unpack_range_descriptor(packed));
    }
    const std::size_t stride = agreed_stride(offers);
    if (!rank.is_thread()) {
        std::uint64_t kinds = offers[0].kinds;
        for (const RangeDescriptor& one : offers) {
            kinds &= one.kinds;
        }
        if (handles_.kind == CU_MEM_HANDLE_TYPE_FABRIC &&
            (kinds & CU_MEM_HANDLE_TYPE_FABRIC) == 0) {
            handles_ = {CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                        "memory was made without FABRIC handles"};
        }
    }

    // 3. Addresses: a range in each process, one for all ranks that are threads of one.
    std::shared_ptr<Owned> owned;
    std::vector<int> devices;
    meeting.together(
        "addresses",
        [&] {
            devices = devices_of(rank, offers);
            if (!rank.is_thread() || me == 0) {
                owned = std::make_shared<Owned>();
                owned->range = AddressRange(stride * ranks, offer.unit);
                owned->mappings.resize(ranks);
            }
        },
        deadline);
    const Registry::Place place(rank.is_thread() ? owned : nullptr);
    if (rank.is_thread()) {
        const std::uint64_t number = meeting.allgather("shared range", place.number(), deadline)[0];
        if (me != 0) {
            owned = std::static_pointer_cast<Owned>(Registry::find(number));
        }
    }

    // 4. Mappings: rank r's memory at base + r * stride.
    std::vector<CUdeviceptr> next(ranks);  // where each rank's next segment goes
    const auto map = [&](std::size_t of, const PhysicalMemory& segment) {
        owned->mappings[of].emplace_back(next[of], segment.size(), segment);
        next[of] += segment.size();
    };
    for (std::size_t i = 0; i < ranks && owned; ++i) {
        next[i] = owned->range.base() + i * stride;
    }
    if (rank.is_thread()) {
        meeting.together(
            "map",
            [&] {
                if (!owned) {
                    throw std::runtime_error("rank 0 has given up its range");
                }
                for (const PhysicalMemory& segment : mine) {
                    map(me, segment);
                }
            },
            deadline);
    } else {
        exchange_memory(rank, mine, offers, handles_.kind, deadline, map);
    }

    // 5. Access: one call for all segments of a rank, since each call costs.
    meeting.together(
        "access",
        [&] {
            for (std::size_t of = 0; of < ranks; ++of) {
                const CUdeviceptr first = owned->range.base() + of * stride;
                if (!rank.is_thread() || of == me) {
                    allow(first, next[of] - first, devices);
                }
            }
        },
        deadline);
    // The last `together` was a barrier: no rank is here before all have mapped.
    owned_ = std::move(owned);
    base_ = owned_->range.base();
    stride_ = stride;
    rank_ = rank.rank();
    ranks_ = rank.size();
}

}  // namespace symm
