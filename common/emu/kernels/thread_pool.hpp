#pragma once
/// \file
/// The threads of the operating system that run the blocks of kernels. Each is started when it is
/// first needed, used again, and never ended.
///
/// The pool must not order one kernel's tasks before another's, or ThreadSanitizer would miss races
/// between the two. So a thread gets its task through a semaphore: what start()'s caller has done
/// is ordered before the task, but the task is not ordered before what the caller does next. The
/// search for an idle thread uses relaxed atomics.

#include <semaphore.h>

#include <atomic>
#include <memory>

namespace symm::emu {

/// Work for a thread of the pool. Must live until done() returns.
class Task {
public:
    virtual void run() = 0;
    /// Called when the thread is free again, as the last use of the task.
    virtual void done() = 0;

protected:
    ~Task() = default;
};

/// Adds `count` to `used`. Where the sum would exceed `most`, adds nothing and returns false.
bool reserve_up_to(std::atomic<int>& used, int count, int most);

class ThreadPool {
public:
    /// CUDA threads at a time, which are fibers. ThreadSanitizer can follow 8,128 threads and
    /// fibers; blocks, streams and the program itself need some of them.
    static constexpr int kMaxThreads = 6000;

    ThreadPool();

    /// Sets `count` CUDA threads aside, all or none. False where not that many are free now.
    bool reserve(int count) { return reserve_up_to(reserved_, count, kMaxThreads); }
    void give_back(int count) { reserved_.fetch_sub(count, std::memory_order_relaxed); }

    /// Runs the task, of one CUDA thread or more that are reserved. Looks for a free slot from
    /// `next` on, and sets `next` to the slot after it. Returns 0, or pthread_create's error.
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
