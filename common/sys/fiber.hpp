#pragma once
/// \file
/// A function that takes turns with the thread that runs it. It has a stack of its own: suspended
/// anywhere, it goes on there later. A switch takes some nanoseconds, one of threads microseconds.
///
/// AddressSanitizer and ThreadSanitizer are told of each switch. For ThreadSanitizer a fiber is
/// another thread, and a switch orders nothing.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/sys/sanitizer.hpp"

namespace symm {

class Fiber {
public:
    /// Throws std::bad_alloc.
    Fiber();
    ~Fiber();
    Fiber(const Fiber&) = delete;

    /// The next resume() calls `body(argument)`, which must not throw. An earlier body that has not
    /// returned never goes on; its objects are not destroyed.
    void start(void (*body)(void* argument), void* argument);
    /// Runs the body until it suspends itself or returns.
    void resume();
    /// Called by the body: continues after resume(), in the thread that called that.
    void suspend();
    /// Whether the body has returned.
    SYMM_UNSEEN bool ended() const { return ended_; }
    /// The addresses of its stack: its begin and end.
    std::pair<std::uintptr_t, std::uintptr_t> stack() const;

private:
    static void live(void**, void*, Fiber* fiber);
    void empty_stack();
    void arrive();

    char* stack_;                ///< Its lowest usable address.
    void* sp_ = nullptr;         ///< The stack pointer, while the fiber is suspended.
    void* thread_sp_ = nullptr;  ///< That of its thread, while the fiber runs.
    void (*body_)(void*) = nullptr;
    void* argument_ = nullptr;
    bool ended_ = true;
    // ThreadSanitizer's:
    [[maybe_unused]] void* context_ = nullptr;
    [[maybe_unused]] void* thread_context_ = nullptr;
    // AddressSanitizer's:
    [[maybe_unused]] void* fake_stack_ = nullptr;
    [[maybe_unused]] const void* thread_stack_ = nullptr;
    [[maybe_unused]] std::size_t thread_stack_bytes_ = 0;
};

}  // namespace symm
