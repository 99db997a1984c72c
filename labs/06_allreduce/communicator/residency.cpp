#include "labs/06_allreduce/communicator/residency.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <stdexcept>

#include "common/cuda/driver.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/06_allreduce/algorithms/kernels.hpp"
#include "labs/06_allreduce/algorithms/mailbox/mailbox.hpp"
#include "labs/06_allreduce/algorithms/two_shot/reduce_packs.hpp"

namespace symm {
namespace {

std::mutex mutex;

/// The number of blocks of `threads` threads that the device keeps resident.
struct Resident {
    unsigned any = std::numeric_limits<unsigned>::max();  ///< Any algorithm's largest kernel.
    unsigned small = any;                                 ///< The largest of the small kernels.
};

Resident resident_blocks(int ranks, unsigned threads) {
    Resident resident;
    for (const AlgorithmRow& row : algorithm_rows()) {
        for (const DataType type : kDataTypes) {
            const unsigned blocks = row.kernels->resident_blocks(type, ranks, threads);
            resident.any = std::min(resident.any, blocks);
            if (row.cost.small_kernels) {
                resident.small = std::min(resident.small, blocks);
            }
        }
    }
    return resident;
}

}  // namespace

std::list<ResidencyShare::Share>& ResidencyShare::shares() {
    static auto& all = *new std::list<Share>;  // outlives communicators with static storage
    return all;
}

ResidencyShare::ResidencyShare(int device, unsigned blocks, unsigned resident) {
    const std::lock_guard lock(mutex);
    unsigned held = 0;
    unsigned capacity = resident;
    for (const Share& share : shares()) {
        if (share.device == device) {
            held += share.blocks;
            capacity = std::min(capacity, share.resident);
        }
    }
    if (held + blocks > capacity) {
        throw std::invalid_argument(fmt::format(
            "device {} keeps {} blocks of communicators resident at once: this process's other "
            "communicators hold {}, and this one needs {}. Lower each communicator's "
            "CommunicatorOptions::max_blocks",
            device, capacity, held, blocks));
    }
    share_ = shares().insert(shares().end(), {device, blocks, resident});
}

ResidencyShare::~ResidencyShare() {
    if (!creator_.is_this_one()) {
        return;  // another thread of the parent may have held the mutex
    }
    const std::lock_guard lock(mutex);
    shares().erase(share_);
}

MostShapes agree_on_shapes(Rank& rank, unsigned max_blocks, std::optional<ResidencyShare>& share) {
    LaunchShape most{.blocks = is_emulated() ? 2U : kMaxBarrierBlocks,
                     .threads = is_emulated() ? 32U : kMostThreads};
    const Resident resident = rank.bootstrap().together(
        "kernels' resident blocks", [&] { return resident_blocks(rank.size(), most.threads); });
    most.blocks =
        std::min(most.blocks, resident.any / static_cast<unsigned>(rank.most_on_a_device()));
    if (max_blocks != 0) {
        most.blocks = std::min(most.blocks, max_blocks);
    }
    // A process's streams share a few hardware queues. With copies of several ranks on one device,
    // a kernel could block the queue of the work that it waits for.
    MostShapes shapes{most, most, is_emulated() || rank.most_on_a_device() == 1, false};
    // More blocks fit of small kernels than of the largest one. But they spread
    // over all multiprocessors, so a communicator that launches them has the device to itself.
    shapes.alone = !is_emulated() && max_blocks == 0 && rank.most_on_a_device() == 1;
    if (shapes.alone) {
        shapes.small.blocks = std::min(kMaxBlocks, resident.small);
    }
    // In two shots, block b of each rank waits for block b of every other. So all ranks launch as
    // many blocks as the rank that can launch the fewest. Packs need not, but this is simpler.
    for (const MostShapes& other : rank.bootstrap().allgather("launch shapes", shapes)) {
        shapes.any.blocks = std::min(shapes.any.blocks, other.any.blocks);
        shapes.small.blocks = std::min(shapes.small.blocks, other.small.blocks);
    }
    rank.bootstrap().together("resident blocks", [&] {
        if (shapes.any.blocks == 0) {
            throw std::invalid_argument(
                fmt::format("device {} keeps {} blocks of {} threads resident at once, less than "
                            "one per rank of this process: use fewer ranks, or --mode process",
                            rank.device(), resident.any, most.threads));
        }
        // Emulated GPUs have room for a kernel and its dependent, which a real one's share may not.
        const unsigned launches = is_emulated() && rank.most_on_a_device() == 1 ? 2 : 1;
        share.emplace(rank.device(), shapes.alone ? resident.any : launches * shapes.any.blocks,
                      resident.any);
    });
    return shapes;
}

}  // namespace symm
