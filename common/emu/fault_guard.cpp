#include "common/emu/fault_guard.hpp"

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

void on_fault(int signal, siginfo_t* info, void* /*context*/) {
    if (Guard* guard = set_active(nullptr)) {
        guard->address = reinterpret_cast<std::uintptr_t>(info->si_addr);
        siglongjmp(guard->jump, 1);
    }
    // The access is repeated when this returns, and faults again.
    ::sigaction(signal, signal == SIGBUS ? &old_bus : &old_segv, nullptr);
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
