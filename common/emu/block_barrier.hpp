#pragma once
/// \file
/// The barrier behind ThreadBlock::sync() and sync_or() on an emulated GPU.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace symm::emu {

/// Thrown by a barrier of an abandoned launch: ends the kernel in this thread.
struct LaunchAbandoned {};

/// A barrier for the threads of a block. Waiting threads sleep: there are many more of them than
/// processors. A thread that has left the kernel is not waited for (as on a GPU since Volta).
class BlockBarrier {
public:
    explicit BlockBarrier(unsigned threads) : expected_(threads) {}

    /// Returns when all threads that have not left are here: whether any of them voted true.
    /// Throws LaunchAbandoned.
    bool arrive_and_wait(bool vote = false) {
        std::unique_lock lock(mutex_);
        if (abandoned_) {
            throw LaunchAbandoned{};
        }
        any_ |= vote;
        if (++arrived_ == expected_) {
            open();
            return result_;
        }
        const std::uint64_t mine = round_;
        opened_.wait(lock, [&] { return round_ != mine || abandoned_; });
        if (round_ == mine) {
            throw LaunchAbandoned{};
        }
        return result_;  // the next round cannot end before this thread arrives there
    }

    /// The calling thread has left the kernel. (Those of an abandoned launch leave before they have
    /// arrived: this must not let through one that has, and is about to throw.)
    void leave() {
        const std::lock_guard lock(mutex_);
        --expected_;
        if (expected_ > 0 && arrived_ == expected_ && !abandoned_) {
            open();
        }
    }

    /// From now on every thread that waits, or comes to wait, throws LaunchAbandoned.
    void abandon() {
        const std::lock_guard lock(mutex_);
        abandoned_ = true;
        opened_.notify_all();
    }

private:
    void open() {
        arrived_ = 0;
        result_ = std::exchange(any_, false);
        ++round_;
        opened_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable opened_;
    unsigned expected_;
    unsigned arrived_ = 0;
    bool any_ = false;     // of the votes of this round
    bool result_ = false;  // of the round before
    std::uint64_t round_ = 0;
    bool abandoned_ = false;
};

}  // namespace symm::emu
