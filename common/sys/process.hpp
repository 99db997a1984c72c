#pragma once
/// \file
/// Starting, waiting for and ending other programs.

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/sys/creator_process.hpp"
#include "common/sys/deadline.hpp"
#include "common/sys/descriptor.hpp"

namespace symm {

/// How a process ended.
struct ExitStatus {
    int code = 0;          ///< The exit code, if no signal ended it.
    int signal = 0;        ///< The signal that ended it, or 0.
    bool is_known = true;  ///< Not if the program's own SIGCHLD handler has waited for it.
    bool success() const { return is_known && code == 0 && signal == 0; }
    /// `exited with code 3`, `was killed by signal 9 (Killed)`.
    std::string describe() const;
};

/// A program to start.
struct Command {
    /// The program (a path, or found in PATH), then its arguments.
    std::vector<std::string> arguments;
    /// `NAME=value`, in place of this process's variables of that name. Of two for one name, the
    /// first counts.
    std::vector<std::string> environment;
    int standard_output = -1;  ///< The descriptor for its stdout, or -1 for this process's stdout.
    int standard_error = -1;   ///< The same for its stderr.
    int inherited = -1;        ///< A descriptor that it inherits, with the same number, or -1.
};

/// Owns a child process: the destructor kills it if it still runs, and reaps it; in a child of
/// fork(), whose sibling it is, it does nothing. Move-only.
class Process {
public:
    Process() = default;
    /// Starts it (posix_spawn: no copy of this process is made, so threads do not matter).
    /// If this process ignores SIGCHLD, it does so no more. Throws std::system_error naming the
    /// program.
    explicit Process(const Command& command);
    Process(Process&& other) noexcept { *this = std::move(other); }
    Process& operator=(Process&& other) noexcept {
        std::swap(id_, other.id_);
        std::swap(handle_, other.handle_);
        std::swap(ended_, other.ended_);
        std::swap(creator_, other.creator_);
        return *this;
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process();

    pid_t id() const { return id_; }
    /// A descriptor that becomes readable when the process ends (pidfd_open(2)); -1 if Linux
    /// refuses it.
    int handle() const { return handle_.get(); }
    /// Waits for its end. Empty once the deadline has passed.
    [[nodiscard]] std::optional<ExitStatus> wait(Deadline deadline);
    /// Whether a signal has stopped it (SIGSTOP, SIGTSTP, ...) and it has not gone on since.
    [[nodiscard]] bool is_stopped() const;
    /// Sends a signal, while it runs.
    void signal(int number) const;

private:
    pid_t id_ = -1;
    UniqueFd handle_;
    std::optional<ExitStatus> ended_;
    CreatorProcess creator_;
};

/// Called by a child early in main: from now on the kernel kills this process when the thread that
/// started it ends. `parent` is the process of that thread. If it has ended already, this
/// process ends at once.
void die_with_parent(pid_t parent);

/// The arguments this process was started with, from /proc/self/cmdline.
std::vector<std::string> own_arguments();

}  // namespace symm
