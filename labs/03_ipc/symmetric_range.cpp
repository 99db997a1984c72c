#include "labs/03_ipc/symmetric_range.hpp"

#include <set>
#include <stdexcept>

#include "common/ranks/registry.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"
#include "labs/03_ipc/imported_memory.hpp"
#include "labs/03_ipc/memory_exchange.hpp"
#include "labs/03_ipc/range_descriptor.hpp"
#include "labs/03_ipc/segments.hpp"

namespace symm {

// Ranks that are threads own one of these together, and each fills in its own mappings.
struct SymmetricRange::Mapped {
    AddressRange range;
    std::vector<std::vector<Mapping>> mappings;  // by rank; unmapped before the range is freed
};

namespace {

struct LocalMemory {
    std::vector<PhysicalMemory> segments;
    RangeDescriptor descriptor;
    std::vector<std::byte> packed;
};

// Step 1: new memory where `pointer` is 0, else the memory that is mapped there.
LocalMemory local_memory(int device, CUdeviceptr pointer, std::size_t bytes,
                         CUmemAllocationHandleType kind) {
    if (bytes == 0) {
        throw std::invalid_argument("a symmetric range of 0 bytes: ask for at least 1");
    }
    // File descriptors always work, so new memory can be exported as one too.
    const CUmemAllocationProp properties =
        device_memory(device, kind | CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    const std::size_t unit = granularity(properties);
    LocalMemory memory{{}, {bytes, unit, device, properties.requestedHandleTypes, {}}, {}};
    memory.segments = pointer == 0 ? create_segments(properties, round_up(bytes, unit))
                                   : find_segments(pointer, bytes);
    for (const PhysicalMemory& segment : memory.segments) {
        memory.descriptor.segments.push_back(segment.size());
        if (pointer != 0) {
            memory.descriptor.kinds &= segment.properties().requestedHandleTypes;
        }
    }
    memory.packed = pack(memory.descriptor);
    return memory;
}

// Step 2: memory of the caller's may have been created without FABRIC handles.
HandleChoice kind_of_all(const HandleChoice& wanted, const std::vector<RangeDescriptor>& all) {
    for (const RangeDescriptor& descriptor : all) {
        if (wanted.kind == CU_MEM_HANDLE_TYPE_FABRIC &&
            (descriptor.kinds & CU_MEM_HANDLE_TYPE_FABRIC) == 0) {
            return {CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                    "memory was created without FABRIC handles"};
        }
    }
    return wanted;
}

// Step 3: the devices whose kernels will use this process's mappings.
std::vector<int> users(const Rank& rank, const std::vector<RangeDescriptor>& all) {
    std::set<int> devices{rank.device()};
    for (int peer = 0; peer < rank.size(); ++peer) {
        require_peer_access(rank.device(), rank.device_of(peer).value_or(-1));
        if (rank.is_thread()) {
            devices.insert(static_cast<int>(all[static_cast<std::size_t>(peer)].device));
        }
    }
    return {devices.begin(), devices.end()};
}

}  // namespace

SymmetricRange::SymmetricRange(Rank& rank, std::size_t bytes, Deadline deadline) : bytes_(bytes) {
    build(rank, 0, deadline);
}

SymmetricRange::SymmetricRange(Rank& rank, CUdeviceptr pointer, std::size_t bytes,
                               Deadline deadline)
    : bytes_(bytes) {
    build(rank, pointer, deadline);
}

void SymmetricRange::build(Rank& rank, CUdeviceptr pointer, Deadline deadline) {
    Bootstrap& bootstrap = rank.bootstrap();
    const auto me = static_cast<std::size_t>(rank.rank());
    const auto ranks = static_cast<std::size_t>(rank.size());
    rank_ = rank.rank();
    ranks_ = rank.size();

    // 1. Memory
    handles_ = rank.is_thread()
                   ? HandleChoice{CU_MEM_HANDLE_TYPE_NONE, "ranks are threads of one process"}
                   : agree_on_handle_kind(rank, deadline);
    LocalMemory local;
    bootstrap.together(
        "memory", [&] { local = local_memory(rank.device(), pointer, bytes_, handles_.kind); },
        deadline);

    // 2. Descriptors
    std::vector<RangeDescriptor> descriptors;
    for (const auto& packed : bootstrap.allgather_bytes("descriptors", local.packed, deadline)) {
        descriptors.push_back(unpack_range_descriptor(packed));
    }
    stride_ = agreed_stride(descriptors);
    handles_ = kind_of_all(handles_, descriptors);

    // 3. Addresses
    std::shared_ptr<Mapped> mapped;
    std::vector<int> devices;
    bootstrap.together(
        "addresses",
        [&] {
            devices = users(rank, descriptors);
            if (!rank.is_thread() || me == 0) {
                mapped = std::make_shared<Mapped>();
                mapped->range = AddressRange(stride_ * ranks, local.descriptor.granularity);
                mapped->mappings.resize(ranks);
            }
        },
        deadline);
    const Registry::Entry entry(rank.is_thread() ? mapped : nullptr);
    if (rank.is_thread()) {
        const auto numbers = bootstrap.allgather("shared range", entry.number(), deadline);
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
        bootstrap.together(
            "map",
            [&] {
                if (!mapped) {
                    throw std::runtime_error("rank 0 has freed the shared range");
                }
                for (const PhysicalMemory& segment : local.segments) {
                    map(me, segment);
                }
            },
            deadline);
    } else {
        exchange_memory(rank, handles_.kind, local.segments, descriptors, map, deadline);
    }

    // 5. Access: one call for all segments of a rank, since each call takes time.
    bootstrap.together(
        "access",
        [&] {
            for (std::size_t owner = 0; owner < ranks; ++owner) {
                const CUdeviceptr first = mapped->range.base() + owner * stride_;
                if (!rank.is_thread() || owner == me) {
                    allow(first, next[owner] - first, devices);
                }
            }
        },
        deadline);
    mapped_ = std::move(mapped);
    base_ = mapped_->range.base();
}

}  // namespace symm
