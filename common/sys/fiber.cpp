#include "common/sys/fiber.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "common/sys/pages.hpp"

#ifdef SYMM_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#ifdef SYMM_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

// Saves the callee-saved registers on the stack and its pointer in *kept, and continues where the
// stack `next` was left. At the start of a stack that is Fiber::live(), which finds the arguments
// in their registers.
extern "C" void symm_switch(void** kept, void* next, symm::Fiber* fiber);
#ifdef __x86_64__  // System V ABI
asm(R"(
    .text
    .hidden symm_switch
    .globl symm_switch
    .type symm_switch, @function
symm_switch:
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
    .size symm_switch, .-symm_switch
)");
constexpr int kSavedWords = 8;  // these, the address to continue at, and that of its caller
constexpr int kReturnAddress = 6;
#else  // AAPCS64
asm(R"(
    .text
    .hidden symm_switch
    .globl symm_switch
    .type symm_switch, %function
symm_switch:
    sub sp, sp, #160
    stp x19, x20, [sp]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size symm_switch, .-symm_switch
)");
constexpr int kSavedWords = 20;
constexpr int kReturnAddress = 11;  // x30
#endif

namespace symm {
namespace {

// Enough for frames that a sanitizer has made larger. Only used pages cost memory.
constexpr std::size_t kStackBytes = 256 * 1024;

}  // namespace

SYMM_UNSEEN Fiber::Fiber() {
    // Not mmap(): ThreadSanitizer would write four times as much of its own memory.
    const long mapped =
        ::syscall(SYS_mmap, nullptr, page_bytes() + kStackBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapped == -1) {
        throw std::bad_alloc();
    }
    ::mprotect(reinterpret_cast<void*>(mapped), page_bytes(), PROT_NONE);
    stack_ = reinterpret_cast<char*>(mapped) + page_bytes();
    empty_stack();
#ifdef SYMM_TSAN
    context_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef SYMM_TSAN
    __tsan_destroy_fiber(context_);
#endif
    ::munmap(stack_ - page_bytes(), page_bytes() + kStackBytes);
}

// As symm_switch leaves a stack. live() has no caller.
SYMM_UNSEEN void Fiber::empty_stack() {
    void** const top = reinterpret_cast<void**>(stack_ + kStackBytes) - kSavedWords;
    std::fill_n(top, kSavedWords, nullptr);
    top[kReturnAddress] = reinterpret_cast<void*>(&live);
    sp_ = top;
}

SYMM_UNSEEN void Fiber::live(void**, void*, Fiber* fiber) {
    fiber->arrive();
    while (true) {
        fiber->body_(fiber->argument_);
        fiber->ended_ = true;
        fiber->suspend();
    }
}

SYMM_UNSEEN void Fiber::start(void (*body)(void*), void* argument) {
    if (!ended_) {
        empty_stack();
    }
    body_ = body;
    argument_ = argument;
    ended_ = false;
}

std::pair<std::uintptr_t, std::uintptr_t> Fiber::stack() const {
    const auto begin = reinterpret_cast<std::uintptr_t>(stack_);
    return {begin, begin + kStackBytes};
}

SYMM_UNSEEN void Fiber::resume() {
#ifdef SYMM_ASAN
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, stack_, kStackBytes);
#endif
#ifdef SYMM_TSAN
    thread_context_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(context_, __tsan_switch_to_fiber_no_sync);
#endif
    symm_switch(&thread_sp_, sp_, this);
#ifdef SYMM_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

SYMM_UNSEEN void Fiber::suspend() {
#ifdef SYMM_ASAN
    __sanitizer_start_switch_fiber(&fake_stack_, thread_stack_, thread_stack_bytes_);
#endif
#ifdef SYMM_TSAN
    __tsan_switch_to_fiber(thread_context_, __tsan_switch_to_fiber_no_sync);
#endif
    symm_switch(&sp_, thread_sp_, this);
    arrive();
}

SYMM_UNSEEN void Fiber::arrive() {
#ifdef SYMM_ASAN
    __sanitizer_finish_switch_fiber(fake_stack_, &thread_stack_, &thread_stack_bytes_);
#endif
}

}  // namespace symm
