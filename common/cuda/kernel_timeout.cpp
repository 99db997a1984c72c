#include "common/cuda/kernel_timeout.hpp"

#include <exception>
#include <stdexcept>

#include "common/cuda/check.hpp"

namespace symm {

KernelTimeout::KernelTimeout(std::chrono::nanoseconds limit)
    : memory_(sizeof(simt::WaitReport)), limit_(limit) {}

void KernelTimeout::synchronize(const Stream& stream, std::string_view what,
                                const std::function<void()>& meanwhile) {
    // The kernel's own limit is the first to pass, so that the kernel can say what it waited for.
    constexpr std::chrono::seconds kGrace{2};
    std::exception_ptr lost;  // a peer that the kernel waits for
    const auto look = [&] {
        if (!meanwhile || lost) {
            return;
        }
        try {
            meanwhile();
        } catch (...) {
            lost = std::current_exception();
            abort();
        }
    };
    try {
        stream.synchronize(what, Deadline::after(limit_ + kGrace), look);
    } catch (const CudaError&) {
        throw;
    } catch (const std::runtime_error& late) {
        abort();
        stream.synchronize(what, Deadline::after(limit_ + kGrace));
        if (lost) {
            std::rethrow_exception(lost);
        }
        if (report()->state == simt::WaitReport::kTimedOut) {  // a wait gave up just then
            simt::throw_if_timed_out(*report(), static_cast<std::uint64_t>(limit_.count()));
        }
        throw std::runtime_error(
            fmt::format("{}, and was ended by the host: no single wait in it had lasted {:.1f} s. "
                        "Give it longer with SYMM_TIMEOUT (seconds), or less to do",
                        late.what(), std::chrono::duration<double>(limit_).count()));
    }
    if (lost) {
        std::rethrow_exception(lost);
    }
    simt::throw_if_timed_out(*report(), static_cast<std::uint64_t>(limit_.count()));
}

void KernelTimeout::abort() {
    simt::claim(&report()->state, simt::WaitReport::kRunning, simt::WaitReport::kAborted);
}

void KernelTimeout::reset() {
    *report() = simt::WaitReport{};
}

}  // namespace symm
