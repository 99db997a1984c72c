#include "common/cuda/kernel_timeout.hpp"

#include <fmt/core.h>

#include <exception>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/graph.hpp"
#include "common/sys/refuse_unless.hpp"

namespace symm {
namespace {

// The abort flag. Either ends all waits of kernels.
constexpr std::uint32_t kAborted = 1;
constexpr std::uint32_t kWaitsEnd = 2;  // no error unless a kernel has seen it

}  // namespace

KernelTimeout::KernelTimeout(std::chrono::nanoseconds limit)
    : gave_up_(sizeof(std::uint32_t)), report_(sizeof(simt::WaitReport)), limit_(limit) {}

void KernelTimeout::synchronize(const Stream& stream, std::string_view what,
                                const std::function<void()>& meanwhile) {
    refuse_unless(!is_captured(stream.get()),  // to wait would break the capture
                  "synchronize() waits for a stream, and this one is being captured: end the "
                  "capture, launch the graph, and call synchronize() then");
    // The kernel's own limit passes first, so that the kernel can report what it waited for.
    constexpr std::chrono::seconds kGrace{2};
    constexpr std::chrono::seconds kAbort{5};  // milliseconds on a GPU
    std::exception_ptr lost;                   // the loss of a peer that the kernel waits for
    const auto look = [&] {
        if (!meanwhile || lost) {
            return;
        }
        try {
            meanwhile();
        } catch (...) {
            lost = std::current_exception();
            end_waits();
        }
    };
    try {
        stream.synchronize(what, Deadline::after(limit_ + kGrace), look);
    } catch (const CudaError&) {
        throw;
    } catch (const std::runtime_error& late) {
        abort();
        stream.synchronize(what, Deadline::after(kAbort));
        if (lost) {
            std::rethrow_exception(lost);
        }
        if (report()->failed != 0) {  // meanwhile a wait gave up by itself
            throw_if_gave_up();
        }
        throw std::runtime_error(
            fmt::format("{}, and the host ended it: no single wait in it had lasted {:.3g} s. "
                        "Raise SYMM_TIMEOUT (seconds), or give it less to do",
                        late.what(), std::chrono::duration<double>(limit_).count()));
    }
    if (has_given_up()) {
        if (lost) {
            std::rethrow_exception(lost);
        }
        if (meanwhile && report()->failed == 0) {
            meanwhile();  // another thread may have ended the waits: the reason says more
        }
    }
    throw_if_gave_up();
}

bool KernelTimeout::has_given_up() const {
    const std::uint32_t abort = simt::load(&report()->abort, simt::Order::kRelaxed);
    if (report()->failed != 0 || abort != kWaitsEnd) {
        return report()->failed != 0 || abort != 0;
    }
    std::uint32_t by_a_kernel = 0;
    copy_to_host(&by_a_kernel, gave_up_.address(), sizeof by_a_kernel);
    return by_a_kernel != 0;
}

void KernelTimeout::throw_if_gave_up() const {
    if (has_given_up()) {
        simt::throw_if_gave_up(*report(), static_cast<std::uint64_t>(limit_.count()));
    }
}

void KernelTimeout::abort() {
    if (is_in_creator()) {
        simt::store(&report()->abort, kAborted, simt::Order::kRelaxed);
    }
}

void KernelTimeout::end_waits() {
    if (is_in_creator()) {
        simt::claim(&report()->abort, std::uint32_t{0}, kWaitsEnd);
    }
}

}  // namespace symm
