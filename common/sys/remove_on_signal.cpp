#include "common/sys/remove_on_signal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <mutex>
#include <string>

namespace symm {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

// What the handler reads: never freed, and taken as it is where `doomed` is true.
struct Slot {
    std::atomic<bool> doomed{false};
    std::atomic<OnSignal> what{OnSignal::kRemoveAll};
    char path[PATH_MAX];
};
Slot slots[8];
std::mutex slots_mutex;  // not for the handler

// Calls nothing but what a signal handler may: no opendir, which allocates.
void remove_now(const char* path) {
    const int directory = ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    // Again where another thread has put a file there meanwhile.
    for (int tries = 0; tries < 10; ++tries) {
        alignas(dirent64) char entries[4096];
        ::lseek(directory, 0, SEEK_SET);
        for (long size = 0;
             (size = ::syscall(SYS_getdents64, directory, entries, sizeof(entries))) > 0;) {
            for (long at = 0; at < size;) {
                const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
                ::unlinkat(directory, entry->d_name, 0);  // refuses "." and ".."
                at += entry->d_reclen;
            }
        }
        if (::rmdir(path) == 0 || errno != ENOTEMPTY) {
            return;
        }
    }
}

void remove_and_end(int signal) {
    const int interrupted = errno;  // the code between here and the end may look at it
    for (const Slot& slot : slots) {
        if (slot.doomed) {
            slot.what == OnSignal::kRemoveAll ? remove_now(slot.path) : (void)::unlink(slot.path);
        }
    }
    for (const Slot& slot : slots) {  // which may be empty only now
        if (slot.doomed && slot.what == OnSignal::kRemoveOne) {
            ::rmdir(slot.path);
        }
    }
    // Not before (SA_RESETHAND): the same signal may come twice, and would cut the removal short.
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // held back until this returns
    errno = interrupted;
}

void handle_signals() {
    struct sigaction ours {};
    ours.sa_handler = remove_and_end;
    for (const int signal : kSignals) {
        struct sigaction now {};
        if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
            ::sigaction(signal, &ours, nullptr);
        }
    }
}

}  // namespace

void remove_on_signal(const std::filesystem::path& path, OnSignal what) {
    const std::lock_guard lock(slots_mutex);
    handle_signals();
    for (Slot& slot : slots) {
        if (!slot.doomed && path.native().size() < sizeof(slot.path)) {
            std::strcpy(slot.path, path.c_str());
            slot.what = what;
            slot.doomed = true;
            return;
        }
    }
}

void keep_on_signal(const std::filesystem::path& path) noexcept {
    const std::lock_guard lock(slots_mutex);
    for (Slot& slot : slots) {
        if (slot.doomed && path == slot.path) {
            slot.doomed = false;
        }
    }
}

SignalsHeld::SignalsHeld() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : kSignals) {
        sigaddset(&held, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &held, &before_);
}

SignalsHeld::~SignalsHeld() {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace symm
