#include "common/cuda/driver.hpp"

#include <fmt/core.h>

#include <atomic>
#include <mutex>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/emu/driver/table.hpp"
#include "common/sys/creator_process.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/log.hpp"
#include "common/sys/refuse_unless.hpp"

namespace symm {
namespace {

struct Choice {
    std::mutex mutex;
    std::string asked;  ///< The argument of choose_driver(); if empty, SYMM_DRIVER decides.
    std::atomic<const DriverTable*> in_use{nullptr};
    DriverTable table;
    bool emulated = true;
    std::optional<CreatorProcess> loaded_by;
    std::string reason;  ///< Why the emulated driver is in use.
};

Choice& choice() {
    static Choice& kept = *new Choice;  // outlives every owner with static storage
    return kept;
}

/// A driver in a child of fork().
template <class Function>
struct Refusing;
template <class... Parameters>
struct Refusing<CUresult (*)(Parameters...)> {
    static CUresult call(Parameters...) { return CUDA_ERROR_NOT_INITIALIZED; }
};
constexpr DriverTable kForked = {
#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) \
    &Refusing<decltype(DriverTable::name##_)>::call,
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION
};

void require_gpu(const DriverTable& table) {
    int devices = 0;
    CUresult result = table.cuInit_(0);
    if (result == CUDA_SUCCESS) {
        result = table.cuDeviceGetCount_(&devices);
    }
    if (result != CUDA_SUCCESS) {
        throw NoNativeDriver{fmt::format("the real driver returned {}", name_of(result)),
                             remedy(result), result != CUDA_ERROR_NO_DEVICE};
    }
    if (devices == 0) {
        throw NoNativeDriver{"the real driver sees no GPU", "", false};
    }
}

/// The caller holds the mutex.
void load(Choice& c) {
    const std::string asked = c.asked.empty() ? env::choice("SYMM_DRIVER") : c.asked;
    c.loaded_by = CreatorProcess();
    c.reason = "as requested";
    try {
        if (asked != "emulated") {
            c.table = native_driver();
            require_gpu(c.table);
            c.emulated = false;
            return;
        }
    } catch (const NoNativeDriver& why_not) {
        const std::string why = fmt::format("{}. {}{}", why_not.reason, why_not.remedy,
                                            why_not.remedy.empty() ? "" : " ");
        if (asked == "native") {
            throw std::runtime_error(
                fmt::format("the real CUDA driver cannot be used: {}Use --driver emulated (or "
                            "SYMM_DRIVER=emulated) to run without a GPU.",
                            why));
        }
        c.reason = why_not.reason;
        // One rank warns for all those that a program spawns.
        const std::string rank = env::text("SYMM_RANK");
        if (why_not.broken && (rank.empty() || rank == "0")) {
            log::warn(
                "GPUs are emulated, because the real CUDA driver does not work: {}"
                "SYMM_DRIVER=emulated chooses that without this warning.",
                why);
        }
    }
    c.table = emu::emulated_driver();
}

}  // namespace

void choose_driver(std::string_view name) {
    refuse_unless(name == "auto" || name == "native" || name == "emulated",
                  "unknown driver '{}': choose auto, native or emulated", name);
    Choice& c = choice();
    const std::lock_guard lock(c.mutex);
    if (c.in_use.load() != nullptr && name != c.asked) {
        throw std::logic_error("the driver must be chosen before its first call");
    }
    c.asked = name;
}

const DriverTable& driver_table() {
    Choice& c = choice();
    // Acquire: pairs with the release below, so that a thread that sees the pointer sees the table.
    if (const DriverTable* table = c.in_use.load(std::memory_order_acquire)) {
        return c.emulated || c.loaded_by->is_this_one() ? *table : kForked;
    }
    const std::lock_guard lock(c.mutex);
    if (c.in_use.load(std::memory_order_relaxed) == nullptr) {
        load(c);
        c.in_use.store(&c.table, std::memory_order_release);
    }
    return c.table;
}

void use_driver_table(const DriverTable* table) {
    driver_table();
    choice().in_use.store(table, std::memory_order_release);
}

std::optional<pid_t> driver_of_parent() {
    const Choice& c = choice();
    return c.in_use.load(std::memory_order_acquire) != nullptr && !c.loaded_by->is_this_one()
               ? std::optional(c.loaded_by->id())
               : std::nullopt;
}

bool is_emulated() {
    driver_table();
    return choice().emulated;
}

std::string describe_driver() {
    const int devices = device_count();
    const std::string which =
        is_emulated() ? fmt::format("emulated ({})", choice().reason) : std::string("native");
    return fmt::format("driver: {}, {} device{}", which, devices, devices == 1 ? "" : "s");
}

}  // namespace symm
