#pragma once
/// \file
/// The barrier that implements ThreadBlock::sync() and sync_or() on an emulated GPU.

#include <atomic>
#include <cstdint>

#include "common/emu/kernels/fibers.hpp"
#include "common/simt/back_off.hpp"

namespace symm::emu {

/// Thrown by a barrier of an abandoned launch: ends the kernel in this thread.
struct LaunchAbandoned {};

/// A barrier for the threads of a block, which are fibers of one thread: so its members need no
/// lock. It does not wait for a thread that has left the kernel (as on a GPU since Volta).
///
/// In each round, what the threads do before they arrive is ordered before what they do after they
/// have passed. ThreadSanitizer is told just that: a lock would also order a slow thread after one
/// that has already arrived for the next round.
class BlockBarrier {
public:
    /// Without a number, call expect() first.
    explicit BlockBarrier(unsigned threads = 0) : expected_(threads) {}

    /// Sets the number of threads, unless it was set before. Returns it.
    SYMM_UNSEEN unsigned expect(unsigned threads) {
        expected_ = expected_ == 0 ? threads : expected_;
        return expected_;
    }

    /// Waits for all threads that have not left. Returns whether any voted true.
    /// Throws LaunchAbandoned.
    SYMM_UNSEEN bool arrive_and_wait(bool vote = false) {
        if (abandoned_) {
            throw LaunchAbandoned{};
        }
        const std::uint64_t mine = rounds_;
        happens_before(&arrived_in_[mine % 2]);
        any_ |= vote;
        if (++arrived_ == expected_) {
            open();
        }
        while (rounds_ == mine) {
            const std::uint64_t changes = changes_;
            if (abandoned_) {
                throw LaunchAbandoned{};
            }
            wait_while(changes_, changes);
        }
        happens_after(&arrived_in_[mine % 2]);
        return result_;  // the next round cannot end before this thread arrives there
    }

    /// The calling thread has left the kernel. (Those of an abandoned launch leave before they have
    /// arrived: this must not let through one that has, and is about to throw.)
    SYMM_UNSEEN void leave() {
        --expected_;
        if (expected_ > 0 && arrived_ == expected_ && !abandoned_) {
            open();
        }
    }

    /// From now on every thread that waits, or comes to wait, throws LaunchAbandoned. May be called
    /// by any thread.
    void abandon() {
        abandoned_ = true;
        ++changes_;
    }

private:
    SYMM_UNSEEN void open() {
        arrived_ = 0;
        result_ = any_;
        any_ = false;
        ++rounds_;
        ++changes_;
    }

    unsigned expected_;
    unsigned arrived_ = 0;
    bool any_ = false;     // of the votes of this round
    bool result_ = false;  // of the round before
    std::uint64_t rounds_ = 0;
    std::atomic<std::uint64_t> changes_{0};
    std::atomic<bool> abandoned_{false};
    char arrived_in_[2];  // an address for each of two rounds; at most two overlap
};

}  // namespace symm::emu
