#include "common/emu/kernels/workers.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <memory>

#include "common/sys/sanitizer.hpp"

// A mutex would order, for ThreadSanitizer, whatever two ranks do before their launches. So these
// words are reached by the compiler's own operations, in functions that it does not look into.
namespace symm::emu {
namespace {

struct Worker {
    void (*body)(void*);
    void* argument;
    std::uint32_t is_called;
    Worker* next;  // in the list of idle ones
};

std::uint32_t is_locked = 0;  // guards `idle`
Worker* idle = nullptr;

SYMM_UNSEEN void lock() {
    while (__atomic_exchange_n(&is_locked, 1, __ATOMIC_ACQUIRE) != 0) {
        ::sched_yield();
    }
}

SYMM_UNSEEN void unlock() {
    __atomic_store_n(&is_locked, 0, __ATOMIC_RELEASE);
}

SYMM_UNSEEN Worker* take_idle() {
    lock();
    Worker* const worker = idle;
    if (worker != nullptr) {
        idle = worker->next;
    }
    unlock();
    return worker;
}

SYMM_UNSEEN void wait_for_call(Worker& worker) {
    worker.is_called = 0;
    lock();
    worker.next = idle;
    idle = &worker;
    unlock();
    while (__atomic_load_n(&worker.is_called, __ATOMIC_ACQUIRE) == 0) {
        ::syscall(SYS_futex, &worker.is_called, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    }
}

SYMM_UNSEEN void call(Worker& worker, void (*body)(void*), void* argument) {
    worker.body = body;
    worker.argument = argument;
    __atomic_store_n(&worker.is_called, 1, __ATOMIC_RELEASE);
    ::syscall(SYS_futex, &worker.is_called, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

SYMM_UNSEEN void* live(void* argument) {
    Worker& worker = *static_cast<Worker*>(argument);
    while (true) {
        worker.body(worker.argument);
        wait_for_call(worker);
    }
}

// Starts a thread that begins with the worker's body. It has no signal of the program's: an idle
// one would keep it.
int start(Worker& worker) {
    constexpr std::size_t kStackBytes = 256 * 1024;  // kernels run on the fibers' stacks
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, kStackBytes);
    // Not joined: after an error the program may end before its kernels.
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t all, before;
    ::sigfillset(&all);
    ::sigdelset(&all, SIGSEGV);  // an access that a device may not make
    ::sigdelset(&all, SIGBUS);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const int error = ::pthread_create(&thread, &attributes, &live, &worker);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_attr_destroy(&attributes);
    return error;
}

}  // namespace

int run_on_worker(void (*body)(void*), void* argument) {
    if (Worker* const worker = take_idle(); worker != nullptr) {
        call(*worker, body, argument);
        return 0;
    }
    auto worker = std::make_unique<Worker>(Worker{body, argument, 0, nullptr});
    const int error = start(*worker);
    if (error == 0) {
        (void)worker.release();  // its thread's
    }
    return error;
}

}  // namespace symm::emu
