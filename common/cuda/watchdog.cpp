#include "common/cuda/watchdog.hpp"

#include "common/cuda/check.hpp"

namespace symm {

Watchdog::Watchdog(std::chrono::nanoseconds limit)
    : memory_(sizeof(simt::WaitReport)), limit_(limit) {}

void Watchdog::synchronize(const Stream& stream, std::string_view what) {
    // The kernel's own limit is the first to pass, so that the kernel can say what it waited for.
    constexpr std::chrono::seconds kGrace{2};
    try {
        stream.synchronize(what, Deadline::after(limit_ + kGrace));
    } catch (const CudaError&) {
        throw;
    } catch (const std::runtime_error&) {
        abort();
        stream.synchronize(what, Deadline::after(limit_ + kGrace));
        simt::check(*report(), static_cast<std::uint64_t>(limit_.count()));
        throw;
    }
    simt::check(*report(), static_cast<std::uint64_t>(limit_.count()));
}

void Watchdog::abort() {
    simt::claim(&report()->state, simt::WaitReport::kRunning, simt::WaitReport::kAborted);
}

void Watchdog::reset() {
    *report() = simt::WaitReport{};
}

}  // namespace symm
