#pragma once
/// \file
/// Code that may touch memory it must not, and the process lives on.
///
/// A GPU turns an illegal access into the loss of a context. On the host it is SIGSEGV or SIGBUS. A
/// handler of those jumps out of the code it came from, but only in threads that run guarded code
/// at that moment; everybody else's faults go to the handler that was there before. The jump skips
/// destructors, so guarded code that faults may leak what it held; it is the context that is lost.

#include <cstdint>
#include <type_traits>

namespace symm::emu {

/// Runs work(argument). False where it faulted; `address` then says on what. The work must not
/// throw.
bool run_guarded(void (*work)(void*), void* argument, std::uintptr_t& address);

/// The same for anything that can be called.
template <class Work>
bool run_guarded(Work&& work, std::uintptr_t& address) {
    using Plain = std::remove_reference_t<Work>;
    return run_guarded([](void* argument) { (*static_cast<Plain*>(argument))(); },
                       const_cast<std::remove_const_t<Plain>*>(&work), address);
}

}  // namespace symm::emu
