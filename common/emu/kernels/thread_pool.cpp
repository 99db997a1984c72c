#include "common/emu/kernels/thread_pool.hpp"

#include <pthread.h>

#include <cerrno>

#include "common/simt/back_off.hpp"

namespace symm::emu {
namespace {

constexpr std::size_t kThreadStackBytes = 256 * 1024;  // kernels have their own stacks

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

ThreadPool::ThreadPool() : slots_(new Slot[kMaxThreads]) {
    for (int i = 0; i < kMaxThreads; ++i) {
        ::sem_init(&slots_[i].given, 0, 0);
    }
}

bool reserve_up_to(std::atomic<int>& used, int count, int most) {
    int now = used.load(kRelaxed);
    while (now + count <= most) {
        if (used.compare_exchange_weak(now, now + count, kRelaxed)) {
            return true;
        }
    }
    return false;
}

int ThreadPool::create_thread(Slot& slot) {
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, kThreadStackBytes);
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const int error = ::pthread_create(&thread, &attributes, work, &slot);
    ::pthread_attr_destroy(&attributes);
    return error;
}

int ThreadPool::start(Task& task, int& next) {
    for (int round = 0;; ++round) {
        for (; next < kMaxThreads; ++next) {
            Slot& slot = slots_[next];
            int state = slot.state.load(kRelaxed);
            if (state == kBusy || !slot.state.compare_exchange_strong(state, kBusy, kRelaxed)) {
                continue;
            }
            ++next;
            slot.task.store(&task, kRelaxed);
            if (state == kIdle) {
                ::sem_post(&slot.given);
                return 0;
            }
            const int error = create_thread(slot);
            if (error != 0) {
                slot.state.store(kAbsent, kRelaxed);
            }
            return error;
        }
        next = 0;
        simt::pause(round);  // it is reserved, so a thread will soon be idle
    }
}

void* ThreadPool::work(void* argument) {
    Slot& slot = *static_cast<Slot*>(argument);
    while (true) {
        Task* task = slot.task.load(kRelaxed);
        task->run();
        slot.state.store(kIdle, kRelaxed);  // before done(), which lets another launch reserve it
        task->done();
        while (::sem_wait(&slot.given) != 0 && errno == EINTR) {
        }
    }
}

ThreadPool& thread_pool() {
    static ThreadPool& kept = *new ThreadPool;
    return kept;
}

}  // namespace symm::emu
