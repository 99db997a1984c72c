#include "common/emu/thread_pool.hpp"

#include <pthread.h>

#include <cerrno>

#include "common/simt/back_off.hpp"

namespace symm::emu {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

// Kernels use little; instrumented frames are several times larger.
constexpr std::size_t kStackBytes = (kSanitized ? 1024 : 256) * 1024;

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

ThreadPool::ThreadPool() : slots_(new Slot[kMaxThreads]) {
    for (int i = 0; i < kMaxThreads; ++i) {
        ::sem_init(&slots_[i].given, 0, 0);
    }
}

bool ThreadPool::reserve(int count) {
    int reserved = reserved_.load(kRelaxed);
    while (reserved + count <= kMaxThreads) {
        if (reserved_.compare_exchange_weak(reserved, reserved + count, kRelaxed)) {
            return true;
        }
    }
    return false;
}

// The first slot in that state from `from_slot` on, round the first `slots` slots; busy from now
// on.
ThreadPool::Slot* ThreadPool::claim(State from, int from_slot, int slots) {
    for (int i = 0; i < slots; ++i) {
        const int index = (from_slot + i) % slots;
        Slot& slot = slots_[index];
        int expected = from;
        if (slot.state.load(kRelaxed) == from &&
            slot.state.compare_exchange_strong(expected, kBusy, kRelaxed)) {
            next_.store(index + 1, kRelaxed);
            return &slot;
        }
    }
    return nullptr;
}

int ThreadPool::create_thread(Slot& slot) {
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, kStackBytes);
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const int error = ::pthread_create(&thread, &attributes, work, &slot);
    ::pthread_attr_destroy(&attributes);
    return error;
}

int ThreadPool::start(Task& task) {
    for (int round = 0;; ++round) {
        const int created = created_.load(kRelaxed);
        if (Slot* slot = claim(kIdle, next_.load(kRelaxed), created)) {
            slot->task.store(&task, kRelaxed);
            ::sem_post(&slot->given);
            return 0;
        }
        if (Slot* slot = claim(kAbsent, created, kMaxThreads)) {
            const int count = static_cast<int>(slot - slots_.get()) + 1;
            int seen = created;
            while (seen < count && !created_.compare_exchange_weak(seen, count, kRelaxed)) {
            }
            slot->task.store(&task, kRelaxed);
            const int error = create_thread(*slot);
            if (error != 0) {
                slot->state.store(kAbsent, kRelaxed);
            }
            return error;
        }
        simt::back_off(round);  // the reservation says that one is about to be idle
    }
}

void* ThreadPool::work(void* argument) {
    Slot& slot = *static_cast<Slot*>(argument);
    while (true) {
        Task* task = slot.task.load(kRelaxed);
        task->run();
        slot.state.store(kIdle, kRelaxed);  // before done(): who waits for that may count on it
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
