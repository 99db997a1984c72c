#pragma once
/// \file
/// Directories and files that go when a signal ends the process, and no destructor runs.

#include <csignal>
#include <filesystem>

namespace symm {

/// What becomes of a path.
enum class OnSignal {
    kRemoveAll,  ///< A directory that is this process's alone goes with the files in it.
    kRemoveOne,  ///< A file goes, and a directory where it is empty: others may still need it.
};

/// From now on SIGINT, SIGTERM, SIGHUP and SIGPIPE remove the path before they end the process as they
/// always do. A signal that the program ignores or handles itself stays as it is. Eight paths at a time; one
/// more is left to its destructor.
void remove_on_signal(const std::filesystem::path& path, OnSignal what = OnSignal::kRemoveAll);

/// Takes that back.
void keep_on_signal(const std::filesystem::path& path) noexcept;

/// While it lives, this thread is not interrupted by those signals: what is made can be announced.
class SignalsHeld {
public:
    SignalsHeld();
    SignalsHeld(const SignalsHeld&) = delete;
    SignalsHeld& operator=(const SignalsHeld&) = delete;
    ~SignalsHeld();

private:
    sigset_t before_;
};

}  // namespace symm
