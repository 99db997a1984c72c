#include "common/simt/waiter.hpp"

#include <fmt/format.h>

#include <iterator>
#include <stdexcept>

#include "common/sys/environment.hpp"

namespace symm::simt {
namespace {

// By Wait: a sentence for each event; for a wait, only what did not come.
constexpr const char* kTexts[] = {
    "nothing",
    "a signal",
    "a barrier arrival",
    "a packet",
    "a line",
    "a filled FIFO slot",
    "a free FIFO slot",
    "its turn",
    "all ranks' arrivals",
    "rank {rank} expected {expected} more bytes of a message from rank {peer}, which sends {seen}: "
    "both sides must pass the same number of bytes, in the same order of calls",
    "rank {rank} refused a step of rank {peer}: its data at offset {seen} does not lie in the "
    "connection's buffer of {expected} bytes",
    "rank {peer} gave up, so rank {rank} cannot trust its own result: data of a later call of rank "
    "{peer} may have replaced data of this one",
    "rank {rank} did not get its part of the sum from the other machines",
    "rank {rank} refused a piece from rank {peer} for offset {seen}: it does not fit into the "
    "bounce buffer or the message, or lies outside the user's buffer of {expected} bytes",
};
static_assert(std::size(kTexts) == static_cast<std::size_t>(Wait::kDescriptor) + 1);

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
    const char* const text = kTexts[static_cast<std::size_t>(what)];
    if (what >= Wait::kFifoMessage) {
        throw std::runtime_error(fmt::format(fmt::runtime(text), fmt::arg("rank", rank),
                                             fmt::arg("peer", peer), fmt::arg("expected", expected),
                                             fmt::arg("seen", report.seen)));
    }
    std::string where;
    if (block >= 0) {
        where = step == Waiting::kNoStep ? fmt::format(" (block {})", block)
                                         : fmt::format(" (block {}, step {})", block, step);
    }
    const std::string from = what == Wait::kArrivals ? "" : fmt::format(" from rank {}", peer);
    throw std::runtime_error(
        fmt::format("rank {} waited {:.3g} s in a kernel for {}{}: expected {}, saw {}{}{}", rank,
                    static_cast<double>(limit_ns) * 1e-9, text, from, expected, report.seen, where,
                    likely_cause()));
}

}  // namespace symm::simt
