#include "labs/05_device_prims/shared_work/work_fifo.hpp"

#include <fmt/core.h>

#include <bit>
#include <stdexcept>
#include <utility>

#include "common/cuda/check.hpp"
#include "common/simt/back_off.hpp"

namespace symm {

namespace {

const WorkFifoOptions& checked(const WorkFifoOptions& options) {
    if (!std::has_single_bit(options.entries) || options.channels == 0) {
        throw std::invalid_argument(fmt::format(
            "a work FIFO has a power of two of entries and at least one channel, not {} and {}",
            options.entries, options.channels));
    }
    return options;
}

}  // namespace

WorkCounters::WorkCounters(const WorkFifoOptions& options)
    : options_(checked(options)),
      consumed_(options.channels * sizeof(std::uint32_t)),
      produced_(options.first) {
    std::fill_n(consumed(), options.channels, options.first);
}

WorkCounters::Slowest WorkCounters::slowest() const {
    Slowest found{0, 0};
    for (unsigned c = 0; c < options_.channels; ++c) {
        // Acquire (1): the block has loaded its items before the host writes to their entries.
        const std::uint32_t loaded = simt::load(consumed() + c, simt::Order::kAcquire);
        if (produced_ - loaded > found.behind) {
            found = {c, produced_ - loaded};
        }
    }
    return found;
}

std::uint32_t WorkCounters::claim(std::size_t count, std::uint32_t args, CUstream stream) {
    CUstreamCaptureStatus status{};
    cu_check(cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing()");
    if (status != CU_STREAM_CAPTURE_STATUS_NONE) {
        throw std::invalid_argument(fmt::format(
            "{} work items in one launch of a captured stream: only {} fit into its parameters, "
            "and a replay would find other items in the work FIFO. Launch fewer at a time",
            count, args));
    }
    if (count > options_.entries) {
        throw std::invalid_argument(
            fmt::format("{} work items in one launch, and the work FIFO has {} entries", count,
                        options_.entries));
    }
    const auto needed = static_cast<std::uint32_t>(count);
    const Deadline deadline = Deadline::after(options_.limit);
    for (int round = 0; slowest().behind > options_.entries - needed; ++round) {
        if (deadline.passed()) {
            const auto [channel, behind] = slowest();
            throw std::runtime_error(fmt::format(
                "waited {:.3g} s for {} free entries of the work FIFO: {} of {} are in use, since "
                "block {} has not loaded the items from number {} on. Its kernel failed, still "
                "waits for something else, or was never launched",
                deadline.seconds(), count, behind, options_.entries, channel, produced_ - behind));
        }
        simt::back_off(round);
    }
    return std::exchange(produced_, produced_ + needed);
}

}  // namespace symm
