#include "common/simt/waiter.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "common/sys/environment.hpp"

namespace symm::simt {
namespace {

std::string_view words(Wait wait) {
    switch (wait) {
        case Wait::kSignal:
            return "a signal";
        case Wait::kBarrier:
            return "a barrier arrival";
        case Wait::kPacket:
            return "a packet";
        case Wait::kLine:
            return "a line";
        case Wait::kFifoData:
            return "a filled FIFO slot";
        case Wait::kFifoSpace:
            return "a free FIFO slot";
        case Wait::kFifoMessage:
        case Wait::kFifoEntry:
        case Wait::kTrust:
        case Wait::kMachines:
        case Wait::kDescriptor:
        case Wait::kNothing:
            break;
    }
    return "nothing";
}

/// The likely cause where the environment has one: then no rank has failed.
std::string likely_cause() {
    const std::string blocking = env::foreign("CUDA_LAUNCH_BLOCKING");
    return blocking.empty() || blocking == "0"
               ? ""
               : fmt::format(
                     ". CUDA_LAUNCH_BLOCKING={} makes each launch wait for its kernel, so the "
                     "kernels of ranks that share a GPU do not run together: unset it",
                     blocking);
}

}  // namespace

void throw_if_gave_up(const WaitReport& report, std::uint64_t limit_ns) {
    const Waiting& waiting = report.waiting;
    const double seconds = static_cast<double>(limit_ns) * 1e-9;
    // The abort flag may be set by any thread, at any time.
    if (report.failed == 0 && load(&report.abort, Order::kRelaxed) == 0) {
        return;
    }
    if (report.failed == 0) {
        throw std::runtime_error("the kernel was aborted before any of its waits had timed out");
    }
    if (waiting.what == Wait::kFifoMessage) {
        throw std::runtime_error(fmt::format(
            "rank {} expected {} more bytes of a message from rank {}, which sends {}: both sides "
            "must pass the same number of bytes, in the same order of calls",
            waiting.rank, waiting.expected, waiting.peer, report.seen));
    }
    if (waiting.what == Wait::kFifoEntry) {
        throw std::runtime_error(fmt::format(
            "rank {} refused a step of rank {}: its data at offset {} does not lie in the "
            "connection's buffer of {} bytes",
            waiting.rank, waiting.peer, report.seen, waiting.expected));
    }
    if (waiting.what == Wait::kTrust) {
        throw std::runtime_error(fmt::format(
            "rank {} gave up, so rank {} cannot trust its own result: data of a later call of rank "
            "{} may have replaced data of this one",
            waiting.peer, waiting.rank, waiting.peer));
    }
    if (waiting.what == Wait::kMachines) {
        throw std::runtime_error(fmt::format(
            "rank {} did not get its part of the sum from the other machines", waiting.rank));
    }
    if (waiting.what == Wait::kDescriptor) {
        throw std::runtime_error(fmt::format(
            "rank {} refused a piece from rank {} for offset {}: it does not fit into the bounce "
            "buffer or the message, or lies outside the user's buffer of {} bytes",
            waiting.rank, waiting.peer, report.seen, waiting.expected));
    }
    std::string where;
    if (waiting.block >= 0) {
        where = waiting.step == Waiting::kNoStep
                    ? fmt::format(" (block {})", waiting.block)
                    : fmt::format(" (block {}, step {})", waiting.block, waiting.step);
    }
    throw std::runtime_error(fmt::format(
        "rank {} waited {:.3g} s in a kernel for {} from rank {}: expected {}, saw {}{}{}",
        waiting.rank, seconds, words(waiting.what), waiting.peer, waiting.expected, report.seen,
        where, likely_cause()));
}

}  // namespace symm::simt
