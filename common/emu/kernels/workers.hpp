#pragma once
/// \file
/// The threads of the operating system that run blocks. A thread that has run its block waits for
/// the next one, of whatever kernel: to start a thread takes longer than most blocks do.

namespace symm::emu {

/// Has a thread call `body(argument)`, which must not throw. Returns 0, or pthread_create's error.
/// For ThreadSanitizer it orders nothing. An idle thread ends only with the process.
[[nodiscard]] int run_on_worker(void (*body)(void*), void* argument);

}  // namespace symm::emu
