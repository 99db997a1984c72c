// Which values may a load return? Exercise 05.9 asks, and every execution answers.

#include <fmt/format.h>

#include <set>

#include "common/explore/explore.hpp"
#include "common/explore/timeouts.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm {
namespace {

std::set<std::uint32_t> returned;  ///< All values that the load returned.

void three_rounds(explore::Scene& scene) {
    auto* const data = scene.allocate<std::uint32_t>(1, "data", 1);
    auto* const flag = scene.allocate<std::uint32_t>(1, "flag", 1);
    scene.launch(0, {}, [=](const simt::ThreadBlock&) {
        for (std::uint32_t round = 1; round <= 3; ++round) {
            simt::store(data, 10 * round, simt::Order::kRelaxed);
            signal(flag, round);
        }
    });
    const simt::Timeout timeout = explore::timeout_of(scene, 1);
    scene.launch(1, {}, [=](const simt::ThreadBlock&) {
        simt::Waiter waiter(timeout);
        wait_signal(waiter, flag, {simt::Wait::kSignal, 1, 0, 2});
        returned.insert(simt::load(data, simt::Order::kRelaxed));
    });
}

}  // namespace
}  // namespace symm

int main() {
    const symm::explore::Report report = symm::explore::explore({}, symm::three_rounds);
    fmt::print("in {} executions the load returns {}\n", report.executions,
               fmt::join(symm::returned, ","));
    return report.exhausted ? 0 : 1;
}
