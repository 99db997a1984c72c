#include "common/emu/faults.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "common/emu/emulator.hpp"
#include "common/emu/errors.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/refuse_unless.hpp"

namespace symm::emu {
namespace {

// Counters are relaxed, and the mutex is only taken if there are plans: a driver call must not
// order one rank's memory accesses before another's, or ThreadSanitizer would miss races.
struct Faults {
    std::array<std::atomic<long>, kDriverFunctions.size()> calls{};
    std::atomic<std::size_t> planned{0};
    std::mutex mutex;
    std::vector<PlannedFailure> plans;
};

Faults& faults() {
    static Faults& kept = *new Faults;  // owners with static storage call the driver at exit
    return kept;
}

/// SYMM_EMU_COUNT: prints how many calls were made, without polls, whose number varies.
void print_calls_at_exit() {
    long calls = 0;
    for (std::size_t i = 0; i < kDriverFunctions.size(); ++i) {
        calls += kDriverFunctions[i].ends_with("Query") ? 0 : faults().calls[i].load();
    }
    fmt::print("driver calls: {}\n", calls);
}

std::size_t find(std::string_view function) {
    const std::size_t index = index_of_function(function);
    refuse_unless(index < kDriverFunctions.size(), "{} is not in driver/functions.inc", function);
    return index;
}

}  // namespace

void plan(const PlannedFailure& failure) {
    Faults& f = faults();
    const std::lock_guard lock(f.mutex);
    f.plans.push_back(failure);
    f.planned = f.plans.size();
}

void fail_call(std::string_view function, long k, std::optional<CUresult> result) {
    refuse_unless(k >= 1, "calls count from 1, not from {}", k);
    plan({find(function), calls_made(function) + k, result});
}

void clear_failures() {
    Faults& f = faults();
    const std::lock_guard lock(f.mutex);
    f.plans.clear();
    f.planned = 0;
}

long calls_made(std::string_view function) {
    return faults().calls[find(function)].load();
}

void refuse_if_forked() {
    const Emulator& e = emulator();
    refuse_if(e.initialised.load(std::memory_order_acquire) && !e.initialised_by->is_this_one(),
              CUDA_ERROR_NOT_INITIALIZED);
}

void enter(std::size_t function) {
    Faults& f = faults();
    const long call = f.calls[function].fetch_add(1, std::memory_order_relaxed) + 1;
    if (call == 1 && function == index_of_function("cuInit") &&
        !env::foreign("SYMM_EMU_COUNT").empty()) {
        std::atexit(print_calls_at_exit);
    }
    if (f.planned.load(std::memory_order_relaxed) > 0) {
        const std::lock_guard lock(f.mutex);
        const auto found = std::ranges::find_if(f.plans, [&](const PlannedFailure& one) {
            return one.function == function && one.call == call;
        });
        if (found != f.plans.end()) {
            const std::optional<CUresult> result = found->result;
            if (!result) {
                std::raise(SIGKILL);
            }
            f.plans.erase(found);
            f.planned = f.plans.size();
            refuse(*result);
        }
    }
    refuse_if(function != index_of_function("cuInit") &&
                  !emulator().initialised.load(std::memory_order_acquire),
              CUDA_ERROR_NOT_INITIALIZED);
}

}  // namespace symm::emu
