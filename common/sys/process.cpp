#include "common/sys/process.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "common/sys/system_error.hpp"

namespace symm {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (std::string& text : texts) {
        list.push_back(text.data());
    }
    list.push_back(nullptr);
    return list;
}

std::vector<std::string> read_arguments() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::vector<std::string> arguments;
    for (std::string one; std::getline(file, one, '\0');) {
        arguments.push_back(one);
    }
    return arguments;
}

const std::vector<std::string> arguments_at_start = read_arguments();

std::vector<std::string> merged_environment(const std::vector<std::string>& additions) {
    std::vector<std::string> all;
    const auto add = [&](std::string_view text) {
        const std::string_view name = text.substr(0, text.find('=') + 1);
        if (std::ranges::none_of(all,
                                 [&](const std::string& one) { return one.starts_with(name); })) {
            all.emplace_back(text);
        }
    };
    std::ranges::for_each(additions, add);
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        add(*entry);
    }
    return all;
}

// A process that ignores SIGCHLD is not told how its children end: waitpid() fails with ECHILD. It
// inherits that from a parent that wanted no zombies.
void stop_ignoring_children() {
    struct sigaction action {};
    ::sigaction(SIGCHLD, nullptr, &action);
    if (action.sa_handler == SIG_IGN) {
        action.sa_handler = SIG_DFL;
    }
    action.sa_flags &= ~SA_NOCLDWAIT;
    ::sigaction(SIGCHLD, &action, nullptr);
}

}  // namespace

std::string ExitStatus::describe() const {
    if (!is_known) {
        return "ended, and a SIGCHLD handler of this program took its exit status";
    }
    if (signal != 0) {
        return fmt::format("was killed by signal {} ({})", signal, ::strsignal(signal));
    }
    return fmt::format("exited with code {}", code);
}

Process::Process(const Command& command) {
    std::vector<std::string> arguments = command.arguments;
    std::vector<std::string> environment = merged_environment(command.environment);
    const auto argv = pointers(arguments);
    const auto envp = pointers(environment);
    stop_ignoring_children();
    posix_spawn_file_actions_t actions{};
    ::posix_spawn_file_actions_init(&actions);
    for (const auto& [from, to] : {std::pair(command.standard_output, STDOUT_FILENO),
                                   std::pair(command.standard_error, STDERR_FILENO),
                                   std::pair(command.inherited, command.inherited)}) {
        if (from >= 0) {
            ::posix_spawn_file_actions_adddup2(&actions, from, to);
        }
    }
    const int error = ::posix_spawnp(&id_, argv.at(0), &actions, nullptr, argv.data(), envp.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        id_ = -1;
        throw_system_error(error, fmt::format("posix_spawn({})", argv[0]));
    }
    // Old Linux kernels and some containers refuse it: then wait() polls.
    handle_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, id_, 0)));
}

Process::~Process() {
    if (id_ > 0 && !ended_ && creator_.is_this_one()) {
        ::kill(id_, SIGKILL);
        while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
}

std::optional<ExitStatus> Process::wait(Deadline deadline) {
    while (id_ > 0 && !ended_) {
        int status = 0;
        const pid_t reaped = ::waitpid(id_, &status, WNOHANG);
        if (reaped == id_) {
            ended_ = WIFSIGNALED(status) ? ExitStatus{.signal = WTERMSIG(status)}
                                         : ExitStatus{.code = WEXITSTATUS(status)};
        } else if (reaped < 0 && errno == ECHILD) {
            ended_ = ExitStatus{.is_known = false};
        } else if (reaped < 0 && errno != EINTR) {
            throw_errno("waitpid({})", id_);
        } else if (reaped == 0) {
            if (deadline.passed()) {
                break;
            }
            constexpr int kLookAgainMs = 10;
            pollfd entry{handle_.get(), POLLIN, 0};  // poll leaves out a descriptor of -1
            ::poll(&entry, 1,
                   handle_ ? deadline.left_ms() : std::min(kLookAgainMs, deadline.left_ms()));
        }
    }
    return ended_;
}

bool Process::is_stopped() const {
    if (id_ <= 0 || ended_) {
        return false;
    }
    std::ifstream file(fmt::format("/proc/{}/stat", id_));
    std::string stat;
    std::getline(file, stat);  // `pid (name) state ...`: T is stopped
    const std::size_t name_end = stat.rfind(") ");
    return name_end != std::string::npos && stat.compare(name_end + 2, 1, "T") == 0;
}

void Process::signal(int number) const {
    if (id_ > 0 && !ended_ && creator_.is_this_one()) {
        ::kill(id_, number);  // not reaped yet, so the number is still this child's
    }
}

void die_with_parent(pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {  // the parent ended before the line above
        ::_exit(1);
    }
}

std::vector<std::string> own_arguments() {
    // Empty if the object that calls this was made before the one above.
    auto arguments = arguments_at_start.empty() ? read_arguments() : arguments_at_start;
    if (arguments.empty()) {
        throw std::runtime_error("this program's arguments cannot be read from /proc/self/cmdline");
    }
    return arguments;
}

}  // namespace symm
