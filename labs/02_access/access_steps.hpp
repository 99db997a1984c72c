#pragma once
/// \file
/// Rights given and taken in every way there is, each shown by kernels that use them.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/cuda/gpu.hpp"
#include "labs/02_access/peer_matrix.hpp"

namespace symm {

/// What one step did and saw.
struct StepReport {
    std::string title;
    std::vector<std::string> lines;  ///< What happened, in order, for people.
    bool right = true;               ///< All data and all rights were as they have to be.
};

/// What the steps work with. References must outlive the call.
struct StepContext {
    std::span<const Gpu> gpus;  ///< `gpus[i]` is device i.
    const PeerMatrix& matrix;
    int owner;          ///< Whose memory is shared.
    std::size_t bytes;  ///< How much data; a multiple of 4, not 0.
};

/// All in one call of cuMemSetAccess; then every user stores and checks.
StepReport all_at_once(const StepContext& context);
/// A call for each device: the same rights, and how long both ways took.
StepReport one_by_one(const StepContext& context);
/// Read-only: the data can be read, and the rights say so. (What a store does: forbidden.hpp.)
StepReport read_only(const StepContext& context);
/// A device is let in while the buffer is in use; what is there stays there.
StepReport added_later(const StepContext& context);
/// Taken away again from one device; the others go on.
StepReport taken_away(const StepContext& context);
/// Memory of the host's NUMA node, which the processor and all devices read and write; and the
/// refusal for device memory.
StepReport host_access(const StepContext& context);

/// All of the above, in this order. `tell` is called with each report as soon as it is there.
/// Returns whether all were right. Throws CudaError where a call fails that must not.
bool run_access_steps(const StepContext& context,
                      const std::function<void(const StepReport&)>& tell);

}  // namespace symm
