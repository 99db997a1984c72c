#pragma once
/// \file
/// The pause of a host thread between two polls.
///
/// An emulated GPU has far more threads than the host has processors, so a thread that polls
/// without a pause keeps the thread that it waits for from running. The threads of an emulated
/// block are fibers, which take turns (emu/kernels/fibers.hpp): there a poll that found nothing
/// lets the others go on.
///
/// Other threads yield first. But yielding is not enough: Linux divides the processors among
/// sessions first (autogroup, sched(7)), and a thread yields only to its own session. A launcher
/// starts each rank in a session of its own, so ranks that only yield slow each other down until
/// they time out. So a long wait sleeps. A short one does not, since a sleep would make it longer.

#include <chrono>
#include <thread>

#include "common/sys/sanitizer.hpp"

namespace symm::simt {

/// Yields with `round` 0 to 15; later calls sleep: 20 us, 40 us, 60 us and so on up to 1 ms.
inline void pause(int round) {
    constexpr int kYields = 16;
    constexpr std::chrono::microseconds kShortest{20};
    constexpr std::chrono::microseconds kLongest{1000};
    const int sleeps = round - kYields;
    if (sleeps >= 0) {
        std::this_thread::sleep_for(sleeps < kLongest / kShortest ? kShortest * (sleeps + 1)
                                                                  : kLongest);
    } else {
        std::this_thread::yield();
    }
}

/// How a fiber lets others go on (emu/kernels/fibers.hpp).
using GiveWay = void (*)(bool idle);

namespace detail {
inline constinit thread_local GiveWay give_way = nullptr;  // in a thread that runs no fibers
inline constinit thread_local unsigned loads = 0;
}  // namespace detail

/// For the thread that runs fibers.
SYMM_UNSEEN inline void set_give_way(GiveWay give_way) {
    detail::give_way = give_way;
}

/// To be called after each poll that found nothing; `round` is 0 at the first and counts up.
SYMM_UNSEEN inline void back_off(int round) {
    if (detail::give_way != nullptr) {
        detail::loads = 0;
        detail::give_way(round > 0);
    } else if (constexpr int kBare = 4; round >= kBare) {  // the first calls return at once
        pause(round - kBare);
    }
}

/// To be called before each load of what others write: after many without a back_off() it lets
/// other fibers go on, so that a loop of nothing but loads ends, as it does on a GPU.
SYMM_UNSEEN inline void before_load() {
    if (detail::give_way != nullptr && ++detail::loads % 64 == 0) {
        detail::give_way(false);
    }
}

}  // namespace symm::simt
