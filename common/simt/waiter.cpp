#include "common/simt/waiter.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "common/sys/environment.hpp"

namespace symm::simt {
namespace {

// A sentence for each event; for a wait, only what did not come.
const char* text_of(Wait what) {
    switch (what) {
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
        case Wait::kTurn:
            return "its turn";
        case Wait::kFifoMessage:
            return "rank {rank} expected {expected} more bytes of a message from rank {peer}, "
                   "which sends {seen}: both sides must pass the same number of bytes, in the same "
                   "order of calls";
        case Wait::kFifoEntry:
            return "rank {rank} refused a step of rank {peer}: its data at offset {seen} does not "
                   "lie in the connection's buffer of {expected} bytes";
        case Wait::kTrust:
            return "rank {peer} gave up, so rank {rank} cannot trust its own result: data of a "
                   "later call of rank {peer} may have replaced data of this one";
        case Wait::kMachines:
            return "rank {rank} did not get its part of the sum from the other machines";
        case Wait::kDescriptor:
            return "rank {rank} refused a piece from rank {peer} for offset {seen}: it does not "
                   "fit into the bounce buffer or the message, or lies outside the user's buffer "
                   "of {expected} bytes";
        case Wait::kNothing:
            break;
    }
    return "nothing";
}

// The likely cause if the environment has one: then no rank has failed.
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
    // The abort flag may be set by any thread, at any time.
    if (report.failed == 0 && load(&report.abort, Order::kRelaxed) == 0) {
        return;
    }
    if (report.failed == 0) {
        throw std::runtime_error("the kernel was aborted before any of its waits had timed out");
    }
    const auto& [what, rank, peer, expected, block, step] = report.waiting;
    if (what >= Wait::kFifoMessage) {
        throw std::runtime_error(fmt::format(fmt::runtime(text_of(what)), fmt::arg("rank", rank),
                                             fmt::arg("peer", peer), fmt::arg("expected", expected),
                                             fmt::arg("seen", report.seen)));
    }
    std::string where;
    if (block >= 0) {
        where = step == Waiting::kNoStep ? fmt::format(" (block {})", block)
                                         : fmt::format(" (block {}, step {})", block, step);
    }
    throw std::runtime_error(fmt::format(
        "rank {} waited {:.3g} s in a kernel for {} from rank {}: expected {}, saw {}{}{}", rank,
        static_cast<double>(limit_ns) * 1e-9, text_of(what), peer, expected, report.seen, where,
        likely_cause()));
}

}  // namespace symm::simt
