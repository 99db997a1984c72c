#pragma once
/// \file
/// Every way to give and take access, each shown by kernels that use it.
///
/// In all steps the buffer is memory of one device, the *owner*; its *users* are the owner and its
/// peers. Where a step lets a user read or write, a kernel on that device does it, and every word
/// read is compared.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/cuda/gpu.hpp"
#include "labs/02_access/peer_matrix.hpp"

namespace symm {

/// The record of one step.
struct StepReport {
    std::string title;
    std::vector<std::string> lines;  ///< The events in order, to be printed.
    bool right = true;               ///< All data and all rights were as expected.
    /// Adds a line about one check. A failed check sets `right` to false.
    void expect(bool as_it_has_to_be, const std::string& line);
};

/// The input of the steps. References must outlive the call.
struct StepContext {
    std::span<const Gpu> gpus;  ///< `gpus[i]` is device i.
    const PeerMatrix& matrix;
    int owner;          ///< The device whose memory is shared.
    std::size_t bytes;  ///< Size of the data; a multiple of 4, not 0.
    const Gpu& gpu(int device) const { return gpus[static_cast<std::size_t>(device)]; }
};

/// Access for all users in one call of cuMemSetAccess; then every user writes and all read.
StepReport all_at_once(const StepContext& context);
/// One call per user: the rights are the same.
StepReport one_by_one(const StepContext& context);
/// Read-only for one user, which reads. (What happens to a store: forbidden.hpp.)
StepReport read_only(const StepContext& context);
/// A user is given access while the buffer is in use, and finds the data that was there before.
StepReport added_later(const StepContext& context);
/// Access is taken away from one user; the others go on.
StepReport taken_away(const StepContext& context);
/// Memory of the host's NUMA node, which the processor and all devices read and write; and the
/// refusal of host access to device memory.
StepReport host_access(const StepContext& context);
/// The goal of the lab: every user writes its part of one buffer, all at the same time; then every
/// user reads all of it.
StepReport written_by_all(const StepContext& context);

/// All steps, in the order in which the program shows them. Each throws CudaError where a call
/// fails that should succeed.
inline constexpr auto kAccessSteps = {all_at_once, one_by_one,  read_only,     added_later,
                                      taken_away,  host_access, written_by_all};

}  // namespace symm
