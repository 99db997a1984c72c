// libwithout_multicast.so, for LD_PRELOAD: a call of the driver's functions for multicast, by NCCL
// or by anybody else, ends the program, since multicast can disable GPUs for their other users. A
// process that ends without one prints how often it has looked them up.
//
// NCCL loads the driver while it runs, so what it finds by dlsym() and cuGetProcAddress() is
// replaced here. A program that is linked with libcuda.so finds the six functions below.

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

std::atomic<int> lookups;

void* refused_or(const char* name, void* found);

/// The one of CUDA 11 has no last parameter, and leaves it alone.
using GetProcAddress = int (*)(const char*, void**, int, unsigned long long, void*);
GetProcAddress get_proc_address[2];  // by its version

template <int kVersion>
int wrapped(const char* name, void** function, int version, unsigned long long flags,
            void* status) {
    const int result = get_proc_address[kVersion](name, function, version, flags, status);
    if (result == 0) {
        *function = refused_or(name, *function);
    }
    return result;
}

template <int kVersion>
void* wrap(void* found) {
    get_proc_address[kVersion] = reinterpret_cast<GetProcAddress>(found);
    return reinterpret_cast<void*>(wrapped<kVersion>);
}

[[noreturn]] void refuse() {
    std::fputs("libwithout_multicast.so: this process called a function of multicast\n", stderr);
    std::abort();
}

/// What a lookup of `name`, which has found `found`, returns.
void* refused_or(const char* name, void* found) {
    const std::string_view asked = name == nullptr ? "" : name;
    if (found == nullptr) {
        return found;
    }
    if (asked.starts_with("cuMulticast")) {
        ++lookups;
        return reinterpret_cast<void*>(refuse);
    }
    return asked == "cuGetProcAddress"      ? wrap<0>(found)
           : asked == "cuGetProcAddress_v2" ? wrap<1>(found)
                                            : found;
}

[[gnu::destructor]] void tell() {
    if (lookups > 0) {
        std::fprintf(stderr, "process %d looked up %d functions of multicast, and called none\n",
                     static_cast<int>(getpid()), lookups.load());
    }
}

/// The C library's, whose version depends on the machine.
void* dlsym_itself() {
    for (const char* const version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
        if (void* const found = dlvsym(RTLD_NEXT, "dlsym", version); found != nullptr) {
            return found;
        }
    }
    std::abort();
}

}  // namespace

extern "C" {

/// Not for callers that pass RTLD_NEXT: this is the next library of all.
void* dlsym(void* library, const char* name) noexcept {
    static const auto real = reinterpret_cast<void* (*)(void*, const char*)>(dlsym_itself());
    return refused_or(name, real(library, name));
}

void cuMulticastGetGranularity() {
    refuse();
}
void cuMulticastCreate() {
    refuse();
}
void cuMulticastAddDevice() {
    refuse();
}
void cuMulticastBindMem() {
    refuse();
}
void cuMulticastBindAddr() {
    refuse();
}
void cuMulticastUnbind() {
    refuse();
}

}  // extern "C"
