#pragma once
/// \file
/// SYMM_TSAN and SYMM_ASAN are defined if clang compiles for ThreadSanitizer and for
/// AddressSanitizer.

#if defined(__clang__) && defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SYMM_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define SYMM_ASAN 1
#endif
#endif

/// A function that ThreadSanitizer does not look into: for what the fibers of a thread share with
/// each other and with the thread, its thread_local objects and whose turn it is.
#ifdef SYMM_TSAN
#define SYMM_UNSEEN __attribute__((no_sanitize("thread"), noinline))
#else
#define SYMM_UNSEEN
#endif
