// The functions that clang calls with -fsanitize=thread: one before each access, at the start and
// end of each function, and in place of each atomic access. (libtsan has them too; it is not
// linked.)

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/explore/runtime.hpp"

using namespace symm::explore;

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
#define PLACE __builtin_return_address(0)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void* place) {
    enter_function(place);
}
void __tsan_func_exit() {
    leave_function();
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define SYMM_PLAIN(bytes)                              \
    void __tsan_read##bytes(void* p) {                 \
        plain_access(p, bytes, false, PLACE);          \
    }                                                  \
    void __tsan_write##bytes(void* p) {                \
        plain_access(p, bytes, true, PLACE);           \
    }                                                  \
    void __tsan_unaligned_read##bytes(void* p) {       \
        plain_access(p, bytes, false, PLACE);          \
    }                                                  \
    void __tsan_unaligned_write##bytes(void* p) {      \
        plain_access(p, bytes, true, PLACE);           \
    }                                                  \
    void __tsan_read_write##bytes(void* p) {           \
        plain_access(p, bytes, false, PLACE);          \
        plain_access(p, bytes, true, PLACE);           \
    }                                                  \
    void __tsan_unaligned_read_write##bytes(void* p) { \
        plain_access(p, bytes, false, PLACE);          \
        plain_access(p, bytes, true, PLACE);           \
    }
SYMM_PLAIN(1)
SYMM_PLAIN(2)
SYMM_PLAIN(4)
SYMM_PLAIN(8)
SYMM_PLAIN(16)
void __tsan_read_range(void* p, std::size_t size) {
    plain_access(p, size, false, PLACE);
}
void __tsan_write_range(void* p, std::size_t size) {
    plain_access(p, size, true, PLACE);
}

// Outside of a scene, and in the explorer itself, these are ordinary accesses.
#define SYMM_UPDATE(bits, T, name, result)                                                \
    T __tsan_atomic##bits##_##name(volatile T* p, T operand, int order) {                 \
        if (!is_running() || !is_in_scene(p)) {                                           \
            const T old = *p;                                                             \
            *p = static_cast<T>(result);                                                  \
            return old;                                                                   \
        }                                                                                 \
        return static_cast<T>(atomic_update(                                              \
            reinterpret_cast<std::uintptr_t>(p), sizeof(T), order, order, PLACE, nullptr, \
            [](std::uint64_t old, std::uint64_t operand) -> std::uint64_t {               \
                return static_cast<T>(result);                                            \
            },                                                                            \
            operand));                                                                    \
    }
#define SYMM_ATOMIC(bits, T)                                                                      \
    T __tsan_atomic##bits##_load(const volatile T* p, int order) {                                \
        return is_running() && is_in_scene(p)                                                     \
                   ? static_cast<T>(atomic_load(reinterpret_cast<std::uintptr_t>(p), sizeof(T),   \
                                                order, PLACE))                                    \
                   : *p;                                                                          \
    }                                                                                             \
    void __tsan_atomic##bits##_store(volatile T* p, T value, int order) {                         \
        if (is_running() && is_in_scene(p)) {                                                     \
            atomic_store(reinterpret_cast<std::uintptr_t>(p), sizeof(T), value, order, PLACE);    \
        } else {                                                                                  \
            *p = value;                                                                           \
        }                                                                                         \
    }                                                                                             \
    SYMM_UPDATE(bits, T, fetch_add, old + operand)                                                \
    SYMM_UPDATE(bits, T, fetch_sub, old - operand)                                                \
    SYMM_UPDATE(bits, T, fetch_or, old | operand)                                                 \
    SYMM_UPDATE(bits, T, exchange, (static_cast<void>(old), operand))                             \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T expected, T desired, int order, \
                                                 int failure) {                                   \
        if (!is_running() || !is_in_scene(p)) {                                                   \
            const T old = *p;                                                                     \
            if (old == expected) {                                                                \
                *p = desired;                                                                     \
            }                                                                                     \
            return old;                                                                           \
        }                                                                                         \
        const std::uint64_t wanted = expected;                                                    \
        return static_cast<T>(atomic_update(                                                      \
            reinterpret_cast<std::uintptr_t>(p), sizeof(T), order, failure, PLACE, &wanted,       \
            [](std::uint64_t, std::uint64_t operand) { return operand; }, desired));              \
    }
SYMM_ATOMIC(8, std::uint8_t)
SYMM_ATOMIC(16, std::uint16_t)
SYMM_ATOMIC(32, std::uint32_t)
SYMM_ATOMIC(64, std::uint64_t)
void __tsan_atomic_thread_fence(int order) {
    atomic_fence(order);
}
void __tsan_atomic_signal_fence(int) {}

// The linker redirects calls of memcpy and similar functions here (--wrap).
void* __real_memcpy(void* to, const void* from, std::size_t size);
void* __real_memmove(void* to, const void* from, std::size_t size);
void* __real_memset(void* to, int value, std::size_t size);
void* __wrap_memcpy(void* to, const void* from, std::size_t size) {
    plain_access(const_cast<void*>(from), size, false, PLACE);
    plain_access(to, size, true, PLACE);
    return __real_memcpy(to, from, size);
}
void* __wrap_memmove(void* to, const void* from, std::size_t size) {
    plain_access(const_cast<void*>(from), size, false, PLACE);
    plain_access(to, size, true, PLACE);
    return __real_memmove(to, from, size);
}
void* __wrap_memset(void* to, int value, std::size_t size) {
    plain_access(to, size, true, PLACE);
    return __real_memset(to, value, size);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
