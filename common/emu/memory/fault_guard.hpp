#pragma once
/// \file
/// Runs code that may make an illegal access, without ending the process.
///
/// On a GPU an illegal access makes the context unusable. On the host it is a signal, SIGSEGV or
/// SIGBUS. A handler of these signals jumps out of the guarded code. Faults of threads that run no
/// guarded code go to the handler that was there before, which may return; this one stays in place.
/// The jump calls no destructors, so guarded code that faults may leak what it held. README.md says
/// who may access what.

#include <cstdint>
#include <functional>
#include <optional>

namespace symm::emu {

/// Where to jump when the code of a run_guarded() faults.
struct Guard;

/// Runs `work`, which must not throw. Returns the address of the access that faulted, if one did.
[[nodiscard]] std::optional<std::uintptr_t> run_guarded(const std::function<void()>& work);

/// For fibers, which have a guard each: swaps `guard` and the calling thread's.
void exchange_guard(Guard*& guard);

}  // namespace symm::emu
