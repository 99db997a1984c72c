#include "common/simt/timeout.hpp"

#include <fmt/core.h>

#include <stdexcept>

namespace symm::simt {
namespace {

std::string_view words(Wait wait) {
    switch (wait) {
        case Wait::kSignal:
            return "a signal";
        case Wait::kBarrier:
            return "the arrival at a barrier";
        case Wait::kPacket:
            return "a packet";
        case Wait::kFifoData:
            return "a filled FIFO slot";
        case Wait::kFifoSpace:
            return "a free FIFO slot";
        case Wait::kNothing:
            break;
    }
    return "nothing";
}

}  // namespace

std::string describe(const WaitReport& report, std::uint64_t limit_ns) {
    switch (report.state) {
        case WaitReport::kRunning:
            return "no wait gave up";
        case WaitReport::kAborted:
            return fmt::format(
                "the kernel was told to give up, before one of its waits had lasted the {:.1f} s "
                "that SYMM_TIMEOUT grants",
                static_cast<double>(limit_ns) * 1e-9);
        default:
            break;
    }
    return fmt::format("rank {} waited {:.1f} s in a kernel for {} of rank {}: expected {}, saw {}",
                       report.rank, static_cast<double>(limit_ns) * 1e-9, words(report.waiting_for),
                       report.peer, report.expected, report.seen);
}

void throw_if_timed_out(const WaitReport& report, std::uint64_t limit_ns) {
    if (report.state != WaitReport::kRunning) {
        throw std::runtime_error(describe(report, limit_ns));
    }
}

}  // namespace symm::simt
