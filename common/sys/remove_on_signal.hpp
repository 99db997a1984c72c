#pragma once
/// \file
/// Directories that go when a signal ends the process, and no destructor runs.

#include <csignal>
#include <filesystem>

namespace symm {

/// From now on SIGINT, SIGTERM, SIGHUP and SIGPIPE remove the directory, with the files in it, before
/// they end the process as they always do. A signal that the program ignores or handles itself stays as it is. Eight
/// directories at a time; one more is left to its destructor.
void remove_on_signal(const std::filesystem::path& directory);

/// Takes that back.
void keep_on_signal(const std::filesystem::path& directory) noexcept;

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
