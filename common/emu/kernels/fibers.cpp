#include "common/emu/kernels/fibers.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <mutex>
#include <new>

#include "common/emu/memory/fault_guard.hpp"
#include "common/simt/back_off.hpp"
#include "common/sys/sanitizer.hpp"

#ifdef SYMM_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#ifdef SYMM_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

// Saves the callee-saved registers (System V ABI, x86-64) on the stack and its pointer in *kept,
// and continues where the stack `next` was left.
extern "C" void symm_emu_switch(void** kept, void* next);
asm(R"(
    .text
    .hidden symm_emu_switch
    .globl symm_emu_switch
    .type symm_emu_switch, @function
symm_emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size symm_emu_switch, .-symm_emu_switch
)");

namespace symm::emu {
namespace {

// Enough for frames that a sanitizer has made larger. Only used pages cost memory.
constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::size_t kGuardBytes = 4096;

struct Fiber {
    void* sp;      // its stack pointer, while others run
    void* thread;  // its thread's stack pointer, while it runs
    char* stack;   // its lowest usable address
    void (*body)(void* argument, unsigned number);
    void* argument;
    unsigned number;
    bool ended;
    bool idle;                               // as passed to give_way()
    const std::atomic<std::uint64_t>* word;  // waits until it changes; or null
    std::uint64_t value;
    Guard* guard;
    Fiber* next;              // in the list of free fibers, or of a block's
    void* context = nullptr;  // ThreadSanitizer's
    void* thread_context = nullptr;
    void* fake_stack = nullptr;  // AddressSanitizer's
    const void* thread_stack = nullptr;
    std::size_t thread_stack_bytes = 0;
};

constinit thread_local Fiber* current_fiber = nullptr;  // the one that runs on this thread

SYMM_UNSEEN void arrived([[maybe_unused]] Fiber& fiber) {
#ifdef SYMM_ASAN
    __sanitizer_finish_switch_fiber(fiber.fake_stack, &fiber.thread_stack,
                                    &fiber.thread_stack_bytes);
#endif
}

// Returns to the thread's loop.
SYMM_UNSEEN void leave(Fiber& fiber) {
#ifdef SYMM_ASAN
    __sanitizer_start_switch_fiber(&fiber.fake_stack, fiber.thread_stack, fiber.thread_stack_bytes);
#endif
#ifdef SYMM_TSAN
    __tsan_switch_to_fiber(fiber.thread_context, __tsan_switch_to_fiber_no_sync);
#endif
    symm_emu_switch(&fiber.sp, fiber.thread);
    arrived(fiber);
}

SYMM_UNSEEN void enter(Fiber& fiber) {
    current_fiber = &fiber;
    exchange_guard(fiber.guard);
#ifdef SYMM_ASAN
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, fiber.stack, kStackBytes);
#endif
#ifdef SYMM_TSAN
    fiber.thread_context = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber.context, __tsan_switch_to_fiber_no_sync);
#endif
    symm_emu_switch(&fiber.thread, fiber.sp);
#ifdef SYMM_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
    exchange_guard(fiber.guard);
    current_fiber = nullptr;
}

SYMM_UNSEEN void live() {
    Fiber& fiber = *current_fiber;
    arrived(fiber);
    while (true) {
        happens_after(fiber.argument);
        fiber.body(fiber.argument, fiber.number);
        fiber.ended = true;
        leave(fiber);
    }
}

// Null, with errno set, if there is no memory.
SYMM_UNSEEN Fiber* new_fiber() {
    // Not mmap(): ThreadSanitizer would write four times as much of its own memory.
    const long mapped =
        ::syscall(SYS_mmap, nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapped == -1) {
        return nullptr;
    }
    void* const memory = reinterpret_cast<void*>(mapped);
    ::mprotect(memory, kGuardBytes, PROT_NONE);
    auto* const fiber = new (std::nothrow) Fiber{};
    if (fiber == nullptr) {
        ::munmap(memory, kGuardBytes + kStackBytes);
        errno = ENOMEM;
        return nullptr;
    }
    fiber->stack = static_cast<char*>(memory) + kGuardBytes;
    // As symm_emu_switch leaves a stack: six registers, the address to continue at, and the return
    // address of that function, which has no caller.
    auto** top = reinterpret_cast<void**>(fiber->stack + kStackBytes) - 8;
    top[6] = reinterpret_cast<void*>(&live);
    fiber->sp = top;
#ifdef SYMM_TSAN
    fiber->context = __tsan_create_fiber(0);
#endif
    return fiber;
}

std::mutex mutex;  // guards free_fibers
Fiber* free_fibers = nullptr;

SYMM_UNSEEN void give_back(Fiber* first) {
    const std::lock_guard lock(mutex);
    while (first != nullptr) {
        Fiber* const fiber = first;
        first = fiber->next;
        fiber->next = free_fibers;
        free_fibers = fiber;
    }
}

// A list of `count` fibers, in the order of their numbers. Null, with errno set, if there is no
// memory.
SYMM_UNSEEN Fiber* take(unsigned count, void (*body)(void*, unsigned), void* argument) {
    Fiber* first = nullptr;
    for (unsigned number = count; number-- > 0;) {
        Fiber* fiber = nullptr;
        {
            const std::lock_guard lock(mutex);
            fiber = free_fibers;
            free_fibers = fiber != nullptr ? fiber->next : nullptr;
        }
        if (fiber == nullptr && (fiber = new_fiber()) == nullptr) {
            const int error = errno;
            give_back(first);
            errno = error;
            return nullptr;
        }
        fiber->body = body;
        fiber->argument = argument;
        fiber->number = number;
        fiber->ended = false;
        fiber->word = nullptr;
        fiber->guard = nullptr;
        fiber->next = first;
        first = fiber;
    }
    return first;
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

SYMM_UNSEEN int run_in_turns(unsigned count, void (*body)(void*, unsigned), void* argument) {
    Fiber* const first = take(count, body, argument);
    if (first == nullptr) {
        return errno;
    }
    simt::set_give_way(&give_way);
    int idle_rounds = 0;
    for (unsigned left = count; left > 0;) {
        bool idle = true;
        for (Fiber* fiber = first; fiber != nullptr; fiber = fiber->next) {
            if (fiber->ended || (fiber->word != nullptr &&
                                 fiber->word->load(std::memory_order_relaxed) == fiber->value)) {
                continue;
            }
            fiber->word = nullptr;
            fiber->idle = false;
            enter(*fiber);
            idle = idle && fiber->idle;
            left -= fiber->ended ? 1 : 0;
        }
        if (idle) {
            simt::pause(idle_rounds++);
        } else {
            idle_rounds = 0;
        }
    }
    simt::set_give_way(nullptr);
    give_back(first);
    return 0;
}

SYMM_UNSEEN void give_way(bool idle) {
    Fiber& fiber = *current_fiber;
    fiber.idle = idle;
    leave(fiber);
}

SYMM_UNSEEN void wait_while(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
    Fiber& fiber = *current_fiber;
    fiber.word = &word;
    fiber.value = value;
    leave(fiber);
}

}  // namespace symm::emu
