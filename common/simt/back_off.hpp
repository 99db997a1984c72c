#pragma once
/// \file
/// The pause of a host thread between two polls.
///
/// An emulated GPU has far more threads than the host has processors, so a thread that polls
/// without a pause keeps the thread that it waits for from running. Yielding is not enough: Linux
/// divides the processors among sessions first (autogroup, sched(7)), and a thread yields only to
/// its own session. A launcher starts each rank in a session of its own, so ranks that only yield
/// slow each other down until they time out. So a long wait sleeps. A short one does not, since a
/// sleep would make it longer.

#include <chrono>
#include <thread>

namespace symm::simt {

/// To be called after each poll that found nothing; `round` is 0 at the first and counts up.
/// The first calls return at once, the next ones yield, later ones sleep: 20 us, 40 us, 60 us
/// and so on up to 1 ms.
inline void back_off(int round) {
    constexpr int kBare = 4;
    constexpr int kYields = 16;
    constexpr std::chrono::microseconds kShortest{20};
    constexpr std::chrono::microseconds kLongest{1000};
    const int sleeps = round - kBare - kYields;
    if (sleeps >= 0) {
        std::this_thread::sleep_for(sleeps < kLongest / kShortest ? kShortest * (sleeps + 1)
                                                                  : kLongest);
    } else if (round >= kBare) {
        std::this_thread::yield();
    }
}

}  // namespace symm::simt
