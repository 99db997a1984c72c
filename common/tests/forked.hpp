#pragma once
/// \file
/// A child that a test forks, and how it ends.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>

#include "common/sys/process.hpp"
#include "common/sys/sanitizer.hpp"

namespace symm::testing {

inline bool in_forked_child = false;

/// Throws unless `condition` holds: a child's EXPECT would not reach the test.
inline void require(bool condition, const std::string& what) {
    if (!condition) {
        throw std::runtime_error(what);
    }
}

/// Forks a child that runs `body` and leaves by exit(), which runs destructors of static objects,
/// or with exit code 1 if `body` throws. Returns how it ended: `exited with code 0`. A child that
/// hangs is ended by SIGALRM.
inline std::string end_of_child(const std::function<void()>& body) {
    std::fflush(nullptr);  // else the child would write it too
    const pid_t child = ::fork();
    if (child == 0) {
        in_forked_child = true;
        ::alarm(40);
        try {
            body();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "child: %s\n", error.what());
            std::exit(1);
        }
        std::exit(0);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) {
        return "could not be forked, or waited for";
    }
    return ExitStatus{WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                      WIFSIGNALED(status) ? WTERMSIG(status) : 0}
        .describe();
}

}  // namespace symm::testing

#ifdef SYMM_ASAN
/// A child lacks the threads that own some of the memory: LeakSanitizer would report that.
extern "C" __attribute__((used)) inline int __lsan_is_turned_off() {
    return symm::testing::in_forked_child ? 1 : 0;
}
#endif
