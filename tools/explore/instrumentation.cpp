// The functions that clang calls with -fsanitize=thread: one before each access, at the start and
// end of each function, and in place of each atomic access. (libtsan has them too; it is not
// linked.)

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tools/explore/exploration.hpp"
#include "tools/explore/instrumentation.hpp"

namespace symm::explore {

using Inside = Exploration::Inside;

void plain(const void* address, std::size_t size, bool store, void* place, std::size_t alignment) {
    if (is_running() && size != 0) {
        // Its own stack, unless it is a poll that runs on another one.
        if (address >= __builtin_frame_address(0) && address < running->thread().stack_base) {
            return;
        }
        const Inside inside(*running);
        inside.accesses().plain(inside.thread, const_cast<void*>(address), size, store, place,
                                alignment);
        running->memory().show(address, size);
    } else if (store && running != nullptr) {
        running->set_up(address, size);
    }
}

namespace {

/// Where in the code an access is made, and in which frame the caller's registers were saved.
struct Caller {
    void* place;
    const void* frame;
};

/// An access of the scene's memory. Nothing outside of a scene, of other memory, and in the
/// explorer itself: these are ordinary accesses.
template <class T>
std::optional<AtomicAccess> explored(const volatile T* p, int order, const Caller& caller,
                                     bool store) {
    if (!is_running()) {
        if (store && running != nullptr) {
            running->set_up(const_cast<const T*>(p), sizeof(T));
        }
        return {};
    }
    const AtomicAccess access{{running->memory().modelled(p), sizeof(T), caller.place,
                               static_cast<std::memory_order>(order)},
                              caller.frame,
                              const_cast<T*>(p)};
    if (running->memory().holds(access.address)) {
        return access;
    }
    const Inside inside(*running);
    inside.accesses().outside(inside.thread, access, store);
    return {};
}

template <class T>
T load(const volatile T* p, int order, const Caller& caller) {
    const auto access = explored(p, order, caller, false);
    if (!access) {
        return *p;
    }
    const Inside inside(*running);
    return static_cast<T>(inside.accesses().load(inside.thread, *access));
}

template <class T>
void store(volatile T* p, T value, int order, const Caller& caller) {
    if (const auto access = explored(p, order, caller, true)) {
        const Inside inside(*running);
        inside.accesses().store(inside.thread, *access, value);
    } else {
        *p = value;
    }
}

// Adds, ors and so on; with `expected`, only to that value.
template <class T, class Change>
T update(volatile T* p, int order, const Caller& caller, const Change& change,
         std::optional<T> expected = {}, int failure = 0) {
    if (const auto access = explored(p, order, caller, true)) {
        const Inside inside(*running);
        return static_cast<T>(inside.accesses().update(
            inside.thread, *access,
            [&](std::uint64_t old) { return std::uint64_t{change(static_cast<T>(old))}; }, expected,
            static_cast<std::memory_order>(failure)));
    }
    const T old = *p;
    if (!expected || old == *expected) {
        *p = change(old);
    }
    return old;
}

template <class T>
void announce_volatile(const volatile T* p, bool store, const Caller& caller) {
    constexpr int kRelaxed = static_cast<int>(std::memory_order_relaxed);
    if (const auto access = explored(p, kRelaxed, caller, store)) {
        const Inside inside(*running);
        if (store) {
            inside.accesses().volatile_store(*access);
        } else {
            inside.accesses().volatile_load(inside.thread, *access);
        }
        running->memory().show(const_cast<const T*>(p), sizeof(T));
    }
}

/// What C++ leaves undefined, at a line of the scene.
void undefined(const std::string& what, std::string_view file, std::uint32_t line) {
    file.remove_prefix(file.rfind('/') + 1);  // 0 if there is no folder
    if (is_running()) {
        running->fail(fmt::format("{}: {} ({}:{})", running->thread().name(), what, file, line));
    }
    throw std::runtime_error(fmt::format("the setup: {} ({}:{})", what, file, line));
}

}  // namespace
}  // namespace symm::explore

using namespace symm::explore;

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
// All registers of the caller are saved below the frame's address.
#define CALLER (__builtin_unwind_init(), Caller{PLACE, __builtin_frame_address(0)})

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void* place) {
    if (is_running()) {
        const Inside inside(*running);
        inside.thread.frame = inside.log().called(place, inside.thread.frame);
    }
}
void __tsan_func_exit() {
    if (is_running()) {
        const Inside inside(*running);
        const Frame*& frame = inside.thread.frame;
        frame = frame != nullptr ? frame->caller : nullptr;
    }
}
void __tsan_vptr_update(void** p, void*) {
    plain(p, 8, true, PLACE, 8);
}
void __tsan_vptr_read(void** p) {
    plain(p, 8, false, PLACE, 8);
}

#define SYMM_PLAIN(kind, bytes, alignment)           \
    void __tsan_##kind##read##bytes(void* p) {       \
        plain(p, bytes, false, PLACE, alignment);    \
    }                                                \
    void __tsan_##kind##write##bytes(void* p) {      \
        plain(p, bytes, true, PLACE, alignment);     \
    }                                                \
    void __tsan_##kind##read_write##bytes(void* p) { \
        plain(p, bytes, false, PLACE, alignment);    \
        plain(p, bytes, true, PLACE, alignment);     \
    }
SYMM_PLAIN(, 1, 1)
SYMM_PLAIN(, 2, 2)
SYMM_PLAIN(, 4, 4)
SYMM_PLAIN(, 8, 8)
SYMM_PLAIN(, 16, 8)  // clang calls them also for 16 bytes that are aligned to 8
SYMM_PLAIN(unaligned_, 2, 1)
SYMM_PLAIN(unaligned_, 4, 1)
SYMM_PLAIN(unaligned_, 8, 1)
SYMM_PLAIN(unaligned_, 16, 1)

#define SYMM_VOLATILE(bits, T)                              \
    void __tsan_volatile_read##bits(const volatile T* p) {  \
        announce_volatile(p, false, CALLER);                \
    }                                                       \
    void __tsan_volatile_write##bits(const volatile T* p) { \
        announce_volatile(p, true, CALLER);                 \
    }
SYMM_VOLATILE(1, std::uint8_t)
SYMM_VOLATILE(2, std::uint16_t)
SYMM_VOLATILE(4, std::uint32_t)
SYMM_VOLATILE(8, std::uint64_t)

#define SYMM_UPDATE(bits, T, name, value)                                             \
    T __tsan_atomic##bits##_##name(volatile T* p, T by, int order) {                  \
        return update(p, order, CALLER,                                               \
                      [=]([[maybe_unused]] T old) { return static_cast<T>(value); }); \
    }
#define SYMM_ATOMIC(bits, T)                                                                    \
    T __tsan_atomic##bits##_load(const volatile T* p, int order) {                              \
        return load(p, order, CALLER);                                                          \
    }                                                                                           \
    void __tsan_atomic##bits##_store(volatile T* p, T value, int order) {                       \
        store(p, value, order, CALLER);                                                         \
    }                                                                                           \
    SYMM_UPDATE(bits, T, exchange, by)                                                          \
    SYMM_UPDATE(bits, T, fetch_add, old + by)                                                   \
    SYMM_UPDATE(bits, T, fetch_sub, old - by)                                                   \
    SYMM_UPDATE(bits, T, fetch_and, old& by)                                                    \
    SYMM_UPDATE(bits, T, fetch_or, old | by)                                                    \
    SYMM_UPDATE(bits, T, fetch_nand, ~(old & by))                                               \
    SYMM_UPDATE(bits, T, fetch_xor, old ^ by)                                                   \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T expected, T value, int order, \
                                                 int failure) {                                 \
        return update(                                                                          \
            p, order, CALLER, [=](T) { return value; }, std::optional(expected), failure);      \
    }
SYMM_ATOMIC(8, std::uint8_t)
SYMM_ATOMIC(16, std::uint16_t)
SYMM_ATOMIC(32, std::uint32_t)
SYMM_ATOMIC(64, std::uint64_t)
void __tsan_atomic_thread_fence(int order) {
    if (is_running()) {
        const Caller caller = CALLER;
        const Inside inside(*running);
        inside.accesses().fence(inside.thread, static_cast<std::memory_order>(order),
                                {{0, 0, caller.place}, caller.frame});
    }
}
void __tsan_atomic_signal_fence(int) {}

// -fsanitize=array-bounds: the layouts are those of compiler-rt's ubsan_handlers.h.
struct UbsanPlace {
    const char* file;
    std::uint32_t line, column;
};
struct UbsanType {
    std::uint16_t kind, info;
    char name[1];
};
struct UbsanBounds {
    UbsanPlace place;
    const UbsanType* array;
    const UbsanType* index;
};
void __ubsan_handle_out_of_bounds(const UbsanBounds* data, std::uintptr_t index) {
    undefined(fmt::format("index {} is out of bounds for {}", static_cast<std::intptr_t>(index),
                          data->array->name),
              data->place.file, data->place.line);
}
}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
