// The functions that clang calls with -fsanitize=thread: one before each access, at the start and
// end of each function, and in place of each atomic access. (libtsan has them too; it is not
// linked.)

#include <fmt/format.h>
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tools/explore/exploration.hpp"

namespace symm::explore {
namespace {

using Inside = Exploration::Inside;

void plain(const void* address, std::size_t size, bool store, void* place,
           std::size_t alignment = 1) {
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

/// While the explorer itself makes accesses for the scene's code.
struct Revealed {
    Revealed() {
        if (is_running()) {
            running->memory().reveal();
        }
    }
    ~Revealed() {
        if (is_running()) {
            running->memory().hide();
        }
    }
};

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
#define PLACE __builtin_return_address(0)
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

// The linker redirects calls of memcpy and similar functions here (--wrap).
void* __real_memcpy(void* to, const void* from, std::size_t size);
void* __real_memmove(void* to, const void* from, std::size_t size);
void* __real_memset(void* to, int value, std::size_t size);
int __real_memcmp(const void* a, const void* b, std::size_t size);
int __real_strcmp(const char* a, const char* b);
std::size_t __real_strlen(const char* text);
const void* __real_memchr(const void* in, int value, std::size_t size);
const char* __real_strchr(const char* text, int value);
void* __wrap_memcpy(void* to, const void* from, std::size_t size) {
    const auto distance =
        reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
    if (is_running() && distance != 0 && (distance < size || 0 - distance < size)) {
        running->fail("memcpy() between bytes that overlap: use memmove()");
    }
    plain(from, size, false, PLACE);
    plain(to, size, true, PLACE);
    const Revealed revealed;
    return __real_memcpy(to, from, size);
}
void* __wrap_memmove(void* to, const void* from, std::size_t size) {
    plain(from, size, false, PLACE);
    plain(to, size, true, PLACE);
    const Revealed revealed;
    return __real_memmove(to, from, size);
}
void* __wrap_memset(void* to, int value, std::size_t size) {
    plain(to, size, true, PLACE);
    const Revealed revealed;
    return __real_memset(to, value, size);
}
int __wrap_memcmp(const void* a, const void* b, std::size_t size) {
    plain(a, size, false, PLACE);
    plain(b, size, false, PLACE);
    const Revealed revealed;
    return __real_memcmp(a, b, size);
}
int __wrap_bcmp(const void* a, const void* b, std::size_t size) {
    plain(a, size, false, PLACE);
    plain(b, size, false, PLACE);
    const Revealed revealed;
    return __real_memcmp(a, b, size);
}
int __wrap_strcmp(const char* a, const char* b) {
    std::size_t size = 0;  // up to the first difference
    std::optional<Revealed> all(std::in_place);
    while (a[size] == b[size] && a[size] != 0) {
        ++size;
    }
    all.reset();
    plain(a, size + 1, false, PLACE);
    plain(b, size + 1, false, PLACE);
    const Revealed revealed;
    return __real_strcmp(a, b);
}
std::size_t __wrap_strlen(const char* text) {
    const std::size_t size = (Revealed(), __real_strlen(text));
    plain(text, size + 1, false, PLACE);
    return size;
}
const void* __wrap_memchr(const void* in, int value, std::size_t size) {
    const void* const found = __real_memchr(in, value, size);
    plain(in,
          found == nullptr ? size
                           : static_cast<const char*>(found) - static_cast<const char*>(in) + 1,
          false, PLACE);
    return found;
}
const char* __wrap_strchr(const char* text, int value) {
    const char* const found = __real_strchr(text, value);
    plain(text, found == nullptr ? __real_strlen(text) + 1 : found - text + 1, false, PLACE);
    return found;
}

// What _FORTIFY_SOURCE makes of these, and clang since version 16.
void* __wrap___memcpy_chk(void* to, const void* from, std::size_t size, std::size_t) {
    return __wrap_memcpy(to, from, size);
}
void* __wrap___memmove_chk(void* to, const void* from, std::size_t size, std::size_t) {
    return __wrap_memmove(to, from, size);
}
void* __wrap___memset_chk(void* to, int value, std::size_t size, std::size_t) {
    return __wrap_memset(to, value, size);
}
void* __tsan_memcpy(void* to, const void* from, std::size_t size) {
    return __wrap_memcpy(to, from, size);
}
void* __tsan_memmove(void* to, const void* from, std::size_t size) {
    return __wrap_memmove(to, from, size);
}
void* __tsan_memset(void* to, int value, std::size_t size) {
    return __wrap_memset(to, value, size);
}

std::size_t __real__ZSt11_Hash_bytesPKvmm(const void* of, std::size_t size, std::size_t seed);
std::size_t __wrap__ZSt11_Hash_bytesPKvmm(const void* of, std::size_t size, std::size_t seed) {
    plain(of, size, false, PLACE);
    const Revealed revealed;
    return __real__ZSt11_Hash_bytesPKvmm(of, size, seed);
}

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

// What a thread has freed is not given to another one in the same execution.
namespace {

void* allocated(std::size_t size) {
    void* const memory = std::malloc(size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

void* allocated(std::size_t size, std::align_val_t alignment) {
    void* memory = nullptr;
    if (::posix_memalign(&memory, static_cast<std::size_t>(alignment), size) != 0) {
        throw std::bad_alloc();
    }
    return memory;
}

void give_back(void* memory) {
    if (memory != nullptr && is_running()) {
        const Inside inside(*running);
        inside.accesses().keep_freed(inside.thread, memory, ::malloc_usable_size(memory));
        return;
    }
    std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
    return allocated(size);
}
void* operator new[](std::size_t size) {
    return allocated(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    return allocated(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
    return allocated(size, alignment);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    give_back(memory);
}
void operator delete(void* memory) noexcept {
    give_back(memory);
}
void operator delete[](void* memory) noexcept {
    give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    give_back(memory);
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
