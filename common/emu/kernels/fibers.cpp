#include "common/emu/kernels/fibers.hpp"

#include <mutex>
#include <new>

#include "common/emu/memory/fault_guard.hpp"
#include "common/simt/back_off.hpp"
#include "common/sys/fiber.hpp"

#ifdef SYMM_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace symm::emu {
namespace {

struct CudaThread {
    Fiber fiber;
    void (*body)(void* argument, unsigned number) = nullptr;
    void* argument = nullptr;
    unsigned number = 0;
    bool idle = false;                                 // as passed to give_way()
    const std::atomic<std::uint64_t>* word = nullptr;  // waits until it changes; or null
    std::uint64_t value = 0;
    Guard* guard = nullptr;
    CudaThread* next = nullptr;  // in the list of free ones, or of a block's
};

constinit thread_local CudaThread* current = nullptr;  // the one that runs on this thread

std::mutex mutex;  // guards free_threads
CudaThread* free_threads = nullptr;

SYMM_UNSEEN void live(void* cuda_thread) {
    CudaThread& thread = *static_cast<CudaThread*>(cuda_thread);
    happens_after(thread.argument);
    thread.body(thread.argument, thread.number);
}

SYMM_UNSEEN void give_back(CudaThread* first) {
    const std::lock_guard lock(mutex);
    while (first != nullptr) {
        CudaThread* const thread = first;
        first = thread->next;
        thread->next = free_threads;
        free_threads = thread;
    }
}

// A list of `count` threads, in the order of their numbers. Null if there is no memory.
SYMM_UNSEEN CudaThread* take(unsigned count, void (*body)(void*, unsigned), void* argument) {
    CudaThread* first = nullptr;
    for (unsigned number = count; number-- > 0;) {
        CudaThread* thread = nullptr;
        {
            const std::lock_guard lock(mutex);
            thread = free_threads;
            free_threads = thread != nullptr ? thread->next : nullptr;
        }
        if (thread == nullptr) {
            try {
                thread = new CudaThread;
            } catch (const std::bad_alloc&) {
                give_back(first);
                return nullptr;
            }
        }
        thread->body = body;
        thread->argument = argument;
        thread->number = number;
        thread->word = nullptr;
        thread->guard = nullptr;
        thread->next = first;
        thread->fiber.start(live, thread);
        first = thread;
    }
    return first;
}

// Gives its fiber a turn.
SYMM_UNSEEN void resume(CudaThread& thread) {
    thread.word = nullptr;
    thread.idle = false;
    current = &thread;
    exchange_guard(thread.guard);
    thread.fiber.resume();
    exchange_guard(thread.guard);
    current = nullptr;
}

}  // namespace

void happens_before([[maybe_unused]] void* address) {
#ifdef SYMM_TSAN
    __tsan_release(address);
#endif
}

void happens_after([[maybe_unused]] void* address) {
#ifdef SYMM_TSAN
    __tsan_acquire(address);
#endif
}

SYMM_UNSEEN bool run_in_turns(unsigned count, void (*body)(void*, unsigned), void* argument) {
    CudaThread* const first = take(count, body, argument);
    if (first == nullptr) {
        return false;
    }
    simt::set_give_way(&give_way);
    int idle_rounds = 0;
    for (unsigned left = count; left > 0;) {
        bool idle = true;
        for (CudaThread* thread = first; thread != nullptr; thread = thread->next) {
            if (thread->fiber.ended() ||
                (thread->word != nullptr &&
                 thread->word->load(std::memory_order_relaxed) == thread->value)) {
                continue;
            }
            resume(*thread);
            idle = idle && thread->idle;
            left -= thread->fiber.ended() ? 1 : 0;
        }
        if (idle) {
            simt::pause(idle_rounds++);
        } else {
            idle_rounds = 0;
        }
    }
    simt::set_give_way(nullptr);
    give_back(first);
    return true;
}

SYMM_UNSEEN void give_way(bool idle) {
    CudaThread& thread = *current;
    thread.idle = idle;
    thread.fiber.suspend();
}

SYMM_UNSEEN void wait_while(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
    CudaThread& thread = *current;
    thread.word = &word;
    thread.value = value;
    thread.fiber.suspend();
}

}  // namespace symm::emu
