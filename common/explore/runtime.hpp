#pragma once
/// \file
/// The execution of a scene: threads that take turns, their waits, and what their accesses do.
/// instrumentation.cpp, which clang's calls reach, is its user.

#include <cstddef>
#include <cstdint>

namespace symm::explore {

/// Whether a thread of a scene runs, and not the explorer itself.
bool is_running();
/// Whether `address` lies in a scene's memory.
bool is_in_scene(const volatile void* address);

void plain_access(void* address, std::size_t size, bool store, void* place);
std::uint64_t atomic_load(std::uintptr_t address, unsigned size, int order, void* place);
void atomic_store(std::uintptr_t address, unsigned size, std::uint64_t value, int order,
                  void* place);
/// Loads, then stores `change(old)` directly after; only loads, with the order `failure`, where
/// `expected` is not null and the old value differs from it. Returns the old value.
std::uint64_t atomic_update(std::uintptr_t address, unsigned size, int order, int failure,
                            void* place, const std::uint64_t* expected,
                            std::uint64_t (*change)(std::uint64_t old, std::uint64_t operand),
                            std::uint64_t operand);
void atomic_fence(int order);

void enter_function(void* place);
void leave_function();

}  // namespace symm::explore
