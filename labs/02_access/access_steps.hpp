#pragma once
/// \file
/// Every way to give and take access, each shown by kernels that use it.
///
/// In all steps the buffer is memory of one device, the *owner*; its *users* are the owner and its
/// peers. If a step lets a user read or write, a kernel on that device does it, and every word
/// read is compared.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/cuda/gpu.hpp"
#include "labs/02_access/peer_matrix.hpp"

namespace symm {

/// The record of one step.
struct StepReport {
    std::string title;
    std::vector<std::string> lines = {};  ///< The events in order, to be printed.
    bool right = true;                    ///< All data and all rights were as expected.
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

/// A step: its title, and what it does with the buffer.
struct AccessStep {
    struct State;  ///< The buffer, its users and the report; defined in the .cpp file.
    std::string_view title;
    void (*run)(State& step);
    bool in_host_memory = false;  ///< The buffer is memory of the host's NUMA node.
    /// Runs the step. Throws CudaError if a call fails that should succeed.
    StepReport operator()(const StepContext& context) const;
};

/// All steps, in the order in which the program shows them. The last one is the goal of the lab:
/// every user writes its part of one buffer, all at the same time; then every user reads all of it.
extern const std::array<AccessStep, 7> kAccessSteps;

}  // namespace symm
