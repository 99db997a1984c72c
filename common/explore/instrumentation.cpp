// The functions that clang calls with -fsanitize=thread: one before each access, at the start and
// end of each function, and in place of each atomic access. (libtsan has them too; it is not
// linked.)

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/explore/exploration.hpp"

namespace symm::explore {
namespace {

void plain(const void* address, std::size_t size, bool store, void* place) {
    if (is_running() && size != 0) {
        running->plain(const_cast<void*>(address), size, store, place);
    }
}

// Outside of a scene, and in the explorer itself, these are ordinary accesses.
template <class T>
bool is_explored(const volatile T* p) {
    return is_running() && running->holds(p);
}
template <class T>
Access access_to(const volatile T* p, int order, void* place) {
    return {reinterpret_cast<std::uintptr_t>(p), sizeof(T), place,
            static_cast<std::memory_order>(order)};
}

template <class T>
T load(const volatile T* p, int order, void* place) {
    return is_explored(p) ? static_cast<T>(running->load(access_to(p, order, place))) : *p;
}

template <class T>
void store(volatile T* p, T value, int order, void* place) {
    if (is_explored(p)) {
        running->store(access_to(p, order, place), value);
    } else {
        *p = value;
    }
}

// Adds, ors and so on; with `expected`, only to that value.
template <class T, class Change>
T update(volatile T* p, int order, void* place, const Change& change,
         std::optional<T> expected = {}, int failure = 0) {
    if (is_explored(p)) {
        return static_cast<T>(running->update(
            access_to(p, order, place),
            [&](std::uint64_t old) { return std::uint64_t{change(static_cast<T>(old))}; }, expected,
            static_cast<std::memory_order>(failure)));
    }
    const T old = *p;
    if (!expected || old == *expected) {
        *p = change(old);
    }
    return old;
}

}  // namespace
}  // namespace symm::explore

using namespace symm::explore;

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
#define PLACE __builtin_return_address(0)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void* place) {
    if (is_running()) {
        running->enter(place);
    }
}
void __tsan_func_exit() {
    if (is_running()) {
        running->leave();
    }
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define SYMM_PLAIN(kind, bytes)                      \
    void __tsan_##kind##read##bytes(void* p) {       \
        plain(p, bytes, false, PLACE);               \
    }                                                \
    void __tsan_##kind##write##bytes(void* p) {      \
        plain(p, bytes, true, PLACE);                \
    }                                                \
    void __tsan_##kind##read_write##bytes(void* p) { \
        plain(p, bytes, false, PLACE);               \
        plain(p, bytes, true, PLACE);                \
    }
SYMM_PLAIN(, 1)
SYMM_PLAIN(, 2)
SYMM_PLAIN(, 4)
SYMM_PLAIN(, 8)
SYMM_PLAIN(, 16)
SYMM_PLAIN(unaligned_, 2)
SYMM_PLAIN(unaligned_, 4)
SYMM_PLAIN(unaligned_, 8)
SYMM_PLAIN(unaligned_, 16)

#define SYMM_ATOMIC(bits, T)                                                                    \
    T __tsan_atomic##bits##_load(const volatile T* p, int order) {                              \
        return load(p, order, PLACE);                                                           \
    }                                                                                           \
    void __tsan_atomic##bits##_store(volatile T* p, T value, int order) {                       \
        store(p, value, order, PLACE);                                                          \
    }                                                                                           \
    T __tsan_atomic##bits##_fetch_add(volatile T* p, T by, int order) {                         \
        return update(p, order, PLACE, [=](T old) { return static_cast<T>(old + by); });        \
    }                                                                                           \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T expected, T value, int order, \
                                                 int failure) {                                 \
        return update(                                                                          \
            p, order, PLACE, [=](T) { return value; }, std::optional(expected), failure);       \
    }
SYMM_ATOMIC(8, std::uint8_t)
SYMM_ATOMIC(16, std::uint16_t)
SYMM_ATOMIC(32, std::uint32_t)
SYMM_ATOMIC(64, std::uint64_t)
void __tsan_atomic_thread_fence(int order) {
    if (is_running()) {
        running->fence(static_cast<std::memory_order>(order));
    }
}
void __tsan_atomic_signal_fence(int) {}

// The linker redirects calls of memcpy and similar functions here (--wrap).
void* __real_memcpy(void* to, const void* from, std::size_t size);
void* __real_memmove(void* to, const void* from, std::size_t size);
void* __real_memset(void* to, int value, std::size_t size);
void* __wrap_memcpy(void* to, const void* from, std::size_t size) {
    plain(from, size, false, PLACE);
    plain(to, size, true, PLACE);
    return __real_memcpy(to, from, size);
}
void* __wrap_memmove(void* to, const void* from, std::size_t size) {
    plain(from, size, false, PLACE);
    plain(to, size, true, PLACE);
    return __real_memmove(to, from, size);
}
void* __wrap_memset(void* to, int value, std::size_t size) {
    plain(to, size, true, PLACE);
    return __real_memset(to, value, size);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
