#pragma once
/// \file
/// How communicators of one process, whose kernels may run at the same time, share a device.
///
/// Blocks of an AllReduce wait for blocks of other ranks. Suppose two communicators were launched
/// in opposite orders on two GPUs, and each kernel filled its GPU: then each kernel would wait for
/// blocks that cannot start, because the other kernel fills their GPU. So all communicators of a
/// device must fit on it together, whichever runs first. Each takes a share when it is created, and
/// one that does not fit is refused.

#include <list>
#include <optional>

#include "common/ranks/rank.hpp"
#include "common/sys/creator_process.hpp"
#include "labs/06_allreduce/tuning/tuner.hpp"

namespace symm {

/// A communicator's share of the blocks that a device keeps resident. Any thread may create one.
class ResidencyShare {
public:
    /// Takes `blocks` blocks of `device`. `resident` is how many blocks of the caller's largest
    /// kernel the device keeps resident. Throws std::invalid_argument if all shares of this process
    /// on the device would exceed the smallest `resident` among them.
    ResidencyShare(int device, unsigned blocks, unsigned resident);
    ResidencyShare(const ResidencyShare&) = delete;
    ResidencyShare& operator=(const ResidencyShare&) = delete;
    ~ResidencyShare();

private:
    struct Share {
        int device;
        unsigned blocks;
        unsigned resident;
    };
    static std::list<Share>& shares();
    std::list<Share>::iterator share_;
    CreatorProcess creator_;
};

/// Takes a share, and agrees with the other ranks on the largest launches of calls. `max_blocks`:
/// of a launch; 0: as many as the device keeps resident. Collective. Throws std::invalid_argument
/// if the device cannot keep a block of each rank resident.
MostShapes agree_on_shapes(Rank& rank, unsigned max_blocks, std::optional<ResidencyShare>& share);

}  // namespace symm
