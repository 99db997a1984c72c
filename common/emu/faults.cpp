#include "common/emu/faults.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <vector>

#include "common/emu/emulator.hpp"

namespace symm::emu {
namespace {

struct Plan {
    std::size_t function;
    long call;                       ///< Counted from the start of the process.
    std::optional<CUresult> result;  ///< None: the process is killed.
};

// Counters are relaxed, and the mutex is only taken if there are plans: a driver call must not
// order one rank's memory accesses before another's, or ThreadSanitizer would miss races.
struct Faults {
    std::array<std::atomic<long>, kDriverFunctions.size()> calls{};
    std::atomic<std::size_t> planned{0};
    std::mutex mutex;
    std::vector<Plan> plans;
};

Faults& faults() {
    static Faults& kept = *new Faults;  // owners with static storage call the driver at exit
    return kept;
}

std::size_t find(std::string_view function) {
    if (!is_driver_function(function)) {
        throw std::invalid_argument(fmt::format("{} is not in driver_functions.inc", function));
    }
    return static_cast<std::size_t>(std::ranges::find(kDriverFunctions, function) -
                                    kDriverFunctions.begin());
}

}  // namespace

bool is_driver_function(std::string_view name) {
    return std::ranges::find(kDriverFunctions, name) != kDriverFunctions.end();
}

void fail_call(std::string_view function, long k, std::optional<CUresult> result) {
    if (k < 1) {
        throw std::invalid_argument(fmt::format("calls count from 1, not from {}", k));
    }
    const std::size_t index = find(function);
    Faults& f = faults();
    const std::lock_guard lock(f.mutex);
    f.plans.push_back({index, f.calls[index].load() + k, result});
    f.planned = f.plans.size();
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

CUresult enter(std::size_t function) {
    Faults& f = faults();
    const long call = f.calls[function].fetch_add(1, std::memory_order_relaxed) + 1;
    if (f.planned.load(std::memory_order_relaxed) > 0) {
        const std::lock_guard lock(f.mutex);
        const auto plan = std::find_if(f.plans.begin(), f.plans.end(), [&](const Plan& p) {
            return p.function == function && p.call == call;
        });
        if (plan != f.plans.end()) {
            if (!plan->result) {
                std::raise(SIGKILL);
            }
            const CUresult result = *plan->result;
            f.plans.erase(plan);
            f.planned = f.plans.size();
            return result;
        }
    }
    if (function != index_of_function("cuInit") &&
        !emulator().initialised.load(std::memory_order_acquire)) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    return CUDA_SUCCESS;
}

}  // namespace symm::emu
