#include "labs/04_shm_transport/transport/end_calls.hpp"

#include <chrono>
#include <exception>
#include <optional>
#include <thread>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/sys/deadline.hpp"

namespace symm {

void end_calls(Rank& rank, KernelTimeout& timeout) noexcept {
    rank.tell_if_unwinding();
    if (std::uncaught_exceptions() > 0) {
        timeout.abort();
    }
    std::optional<CurrentContext> current;
    try {
        current.emplace(rank.gpu());
        // The wait has no deadline: another thread watches the time, and the other ranks.
        const std::jthread watching(
            [&, deadline = Deadline::standard()](const std::stop_token& ended) {
                while (!ended.stop_requested()) {
                    if (deadline.passed() || rank.bootstrap().async_error("calls in flight")) {
                        timeout.abort();
                        return;
                    }
                    std::this_thread::sleep_for(std::chrono::milliseconds{1});
                }
            });
        cu_check(cuCtxSynchronize(), "cuCtxSynchronize()");
    } catch (const std::exception&) {  // a destructor cannot report it
        timeout.abort();
        cuCtxSynchronize();
    }
}

}  // namespace symm
