#pragma once
/// \file
/// The operating-system threads that play CUDA threads. Started when first needed, used again,
/// never ended.
///
/// What one task did is not ordered before the next task of another thread: a thread is handed a
/// task through a semaphore (which orders the giver before the thread, never the other way), and
/// the search for an idle one uses relaxed atomics. So ThreadSanitizer sees a kernel's accesses
/// unordered with those of kernels elsewhere, as they are on GPUs.

#include <semaphore.h>

#include <atomic>
#include <memory>

namespace symm::emu {

/// What a pool thread does. Has to outlive done().
class Task {
public:
    virtual void run() = 0;
    /// Called when the thread is free again. The last use of the task.
    virtual void done() = 0;

protected:
    ~Task() = default;
};

class ThreadPool {
public:
    /// ThreadSanitizer knows 8,128 threads; streams and the program's own need some as well.
    static constexpr int kMaxThreads = 6000;

    ThreadPool();

    /// Sets `count` threads aside, all or none. False where not that many are free now.
    bool reserve(int count);
    void give_back(int count) { reserved_.fetch_sub(count, std::memory_order_relaxed); }

    /// Lets a thread of a reservation run the task. Returns 0, or pthread_create's error.
    int start(Task& task);

private:
    enum State : int { kAbsent, kIdle, kBusy };
    struct Slot {
        std::atomic<int> state{kAbsent};
        std::atomic<Task*> task{nullptr};
        sem_t given;
    };

    static void* work(void* slot);
    Slot* claim(State from, int from_slot, int slots);
    static int create_thread(Slot& slot);

    std::unique_ptr<Slot[]> slots_;
    std::atomic<int> reserved_{0};
    std::atomic<int> created_{0};  ///< Slots below this had a thread once.
    std::atomic<int> next_{0};     ///< Where to look first.
};

/// The process's pool. Never destroyed.
ThreadPool& thread_pool();

}  // namespace symm::emu
