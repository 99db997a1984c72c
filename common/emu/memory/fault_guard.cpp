#include "common/emu/memory/fault_guard.hpp"

#include <csetjmp>
#include <csignal>

#include "common/simt/back_off.hpp"

namespace symm::emu {

struct Guard {
    sigjmp_buf jump;
    volatile std::uintptr_t address;
};

namespace {

// Null in threads that run no guarded code. The handler may read it at any time.
constinit thread_local Guard* volatile active = nullptr;

SYMM_UNSEEN Guard* set_active(Guard* guard) {
    Guard* const before = active;
    active = guard;
    return before;
}

struct sigaction old_segv, old_bus;

// The system's own action, since no handler was there before: ends the process.
void take_default(int signal, const struct sigaction& old, const siginfo_t& info) {
    const bool is_sent = info.si_code <= 0;  // by kill() or raise()
    if (is_sent && old.sa_handler == SIG_IGN) {
        return;
    }
    ::sigaction(signal, &old, nullptr);
    if (is_sent) {
        ::raise(signal);
    }
    // A fault's access is repeated when this returns, and faults again.
}

void on_fault(int signal, siginfo_t* info, void* context) {
    if (Guard* guard = set_active(nullptr)) {
        guard->address = reinterpret_cast<std::uintptr_t>(info->si_addr);
        siglongjmp(guard->jump, 1);
    }
    const struct sigaction& old = signal == SIGBUS ? old_bus : old_segv;
    if (old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN) {
        take_default(signal, old, *info);
    } else if ((old.sa_flags & SA_SIGINFO) != 0) {
        old.sa_sigaction(signal, info, context);  // may return, having mended the cause
    } else {
        old.sa_handler(signal);
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

std::optional<std::uintptr_t> run_guarded(const std::function<void()>& work) {
    [[maybe_unused]] static const bool installed = install();
    Guard guard;
    // 1: the jump restores the signal mask too. In the handler the signal is blocked.
    if (sigsetjmp(guard.jump, 1) != 0) {
        return guard.address;
    }
    set_active(&guard);
    work();
    set_active(nullptr);
    return std::nullopt;
}

void exchange_guard(Guard*& guard) {
    guard = set_active(guard);
}

}  // namespace symm::emu
