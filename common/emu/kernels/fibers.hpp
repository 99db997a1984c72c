#pragma once
/// \file
/// The CUDA threads of an emulated block: fibers (common/sys/fiber.hpp), which take turns on one
/// thread of the operating system.
///
/// Each runs until it waits: at a barrier of its block (block_barrier.hpp), or after a poll that
/// found nothing. Then the next one goes on. For ThreadSanitizer a switch orders nothing
/// (README.md). Later calls, on whatever thread, reuse the fibers.

#include <atomic>
#include <cstdint>

namespace symm::emu {

/// Tell ThreadSanitizer that what precedes happens_before() comes before what follows a later
/// happens_after() with the same address.
void happens_before(void* address);
void happens_after(void* address);

/// Runs `body(argument, 0)` to `body(argument, count - 1)`, each in a fiber, until all have
/// returned. A body must not throw. Returns false if there is no memory for the stacks; then none
/// has run.
[[nodiscard]] bool run_in_turns(unsigned count, void (*body)(void* argument, unsigned number),
                                void* argument);

/// Called in a fiber: lets the others go on. Returns after their turns, or later.
/// `idle`: it has found no work since its last call.
void give_way(bool idle);

/// Called in a fiber: returns when `word` is no longer `value`, or earlier.
void wait_while(const std::atomic<std::uint64_t>& word, std::uint64_t value);

}  // namespace symm::emu
