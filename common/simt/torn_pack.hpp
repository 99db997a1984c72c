#pragma once
/// \file
/// Accesses of 16 bytes that a host thread makes in two parts, in either order and with a pause in
/// between. PTX allows that, but no GPU that we know does it, and a host thread does it too rarely
/// for a test: a reader that checks the flag of one half only would pass.
///
/// Off, unless SYMM_EMU_TORN_PACKS=1 is set and the driver is emulated.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

#include "common/simt/back_off.hpp"

namespace symm::simt {

/// Whether such accesses are torn. Set before kernels run.
inline std::atomic<bool> torn_packs{false};

namespace detail {
/// Each thread has its own random sequence; the constants are Knuth's (MMIX).
SYMM_UNSEEN inline std::uint64_t next_random() {
    thread_local std::uint64_t state = std::hash<std::thread::id>{}(std::this_thread::get_id());
    return state = state * 6364136223846793005U + 1442695040888963407U;
}
}  // namespace detail

/// Calls `access(0)` and `access(1)`, each of which makes the access to one half.
template <class Access>
void access_halves(const Access& access) {
    if (!torn_packs.load(std::memory_order_relaxed)) {
        access(0);
        access(1);
        return;
    }
    const std::uint64_t random = detail::next_random();
    const int first = static_cast<int>(random >> 63);
    access(first);
    if ((random >> 61) % 4 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));  // other blocks run meanwhile
        back_off(0);  // and other threads of this one
    }
    access(1 - first);
}

}  // namespace symm::simt
