// The C library's functions that access memory, which is not instrumented: the linker redirects the
// scenes' calls of them here (--wrap).

#include <cstdint>

#include "tools/explore/exploration.hpp"
#include "tools/explore/instrumentation.hpp"

namespace symm::explore {
namespace {

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

}  // namespace
}  // namespace symm::explore

using namespace symm::explore;  // NOLINT(google-build-using-namespace): as instrumentation.cpp

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern "C" {
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
    {
        const Revealed revealed;
        while (a[size] == b[size] && a[size] != 0) {
            ++size;
        }
    }
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
    const void* const found = (Revealed(), __real_memchr(in, value, size));
    plain(in,
          found == nullptr ? size
                           : static_cast<const char*>(found) - static_cast<const char*>(in) + 1,
          false, PLACE);
    return found;
}
const char* __wrap_strchr(const char* text, int value) {
    const char* const found = (Revealed(), __real_strchr(text, value));
    const char* const last = found != nullptr ? found : text + (Revealed(), __real_strlen(text));
    plain(text, last - text + 1, false, PLACE);
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
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
