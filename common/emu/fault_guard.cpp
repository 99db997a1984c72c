#include "common/emu/fault_guard.hpp"

#include <csetjmp>
#include <csignal>

namespace symm::emu {
namespace {

struct Guard {
    sigjmp_buf jump;
    volatile std::uintptr_t address;
};

// Null in threads that run nothing guarded. Plain data: the handler may read it at any time.
thread_local Guard* volatile active = nullptr;

struct sigaction old_segv, old_bus;

void on_fault(int signal, siginfo_t* info, void* context) {
    if (Guard* guard = active) {
        active = nullptr;
        guard->address = reinterpret_cast<std::uintptr_t>(info->si_addr);
        siglongjmp(guard->jump, 1);
    }
    const struct sigaction& old = signal == SIGBUS ? old_bus : old_segv;
    if ((old.sa_flags & SA_SIGINFO) != 0) {
        old.sa_sigaction(signal, info, context);
    } else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
        old.sa_handler(signal);
    } else {
        ::sigaction(signal, &old, nullptr);  // the access is repeated, and ends the process as ever
    }
}

bool install() {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGSEGV, &action, &old_segv);
    ::sigaction(SIGBUS, &action, &old_bus);
    return true;
}

}  // namespace

bool run_guarded(void (*work)(void*), void* argument, std::uintptr_t& address) {
    [[maybe_unused]] static const bool installed = install();
    Guard guard;
    if (sigsetjmp(guard.jump, 1) !=
        0) {  // with the signal mask, in which the signal is blocked now
        address = guard.address;
        return false;
    }
    active = &guard;
    work(argument);
    active = nullptr;
    return true;
}

}  // namespace symm::emu
