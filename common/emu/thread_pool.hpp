#pragma once
/// \file
/// The threads of the operating system that play CUDA threads. Each is started when it is first
/// needed, used again, and never ended.
///
/// A task must not be ordered before the next task of another thread, or ThreadSanitizer would miss
/// races between kernels. So a thread gets its task through a semaphore, which orders the giver
/// before the thread and never the other way, and the search for an idle thread uses relaxed
/// atomics.

#include <semaphore.h>

#include <atomic>
#include <memory>

namespace symm::emu {

/// What a thread of the pool does. Must live until done() returns.
class Task {
public:
    virtual void run() = 0;
    /// Called when the thread is free again, as the last use of the task.
    virtual void done() = 0;

protected:
    ~Task() = default;
};

/// Adds `count` to `used` unless more than `most` would be in use then. False where they would.
bool reserve_up_to(std::atomic<int>& used, int count, int most);

class ThreadPool {
public:
    /// ThreadSanitizer can follow 8,128 threads; streams and the program's own need some as well.
    static constexpr int kMaxThreads = 6000;

    ThreadPool();

    /// Sets `count` threads aside, all or none. False where not that many are free now.
    bool reserve(int count) { return reserve_up_to(reserved_, count, kMaxThreads); }
    void give_back(int count) { reserved_.fetch_sub(count, std::memory_order_relaxed); }

    /// Lets a reserved thread run the task. Looks for one from slot `next` on, and sets `next` to
    /// the slot after it. Returns 0, or pthread_create's error.
    int start(Task& task, int& next);

private:
    enum State : int { kAbsent, kIdle, kBusy };
    struct Slot {
        std::atomic<int> state{kAbsent};
        std::atomic<Task*> task{nullptr};
        sem_t given;
    };

    static void* work(void* slot);
    static int create_thread(Slot& slot);

    std::unique_ptr<Slot[]> slots_;
    std::atomic<int> reserved_{0};
};

/// The process's pool. Never destroyed.
ThreadPool& thread_pool();

}  // namespace symm::emu
