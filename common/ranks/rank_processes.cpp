#include "common/ranks/rank_processes.hpp"

#include <fmt/core.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "common/bootstrap/bootstrap.hpp"
#include "common/sys/deadline.hpp"
#include "common/sys/directory.hpp"
#include "common/sys/process.hpp"
#include "common/sys/socket.hpp"

namespace symm {
namespace {

constexpr std::chrono::seconds kTimeToNotice{3};
constexpr std::chrono::seconds kTimeToObey{2};
/// For the last rank of a run that has failed. Longer than it takes a kernel to be ended because a peer is gone.
constexpr std::chrono::seconds kTimeToFollow{10};

// Turns the signals that would end this process into something that can be waited for.
class SignalWatch {
public:
    SignalWatch() {
        sigemptyset(&watched_);
        for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
            sigaddset(&watched_, number);
        }
        ::pthread_sigmask(SIG_BLOCK, &watched_, &before_);
        descriptor_ = UniqueFd(::signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK));
    }
    SignalWatch(const SignalWatch&) = delete;
    SignalWatch& operator=(const SignalWatch&) = delete;
    ~SignalWatch() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

    int descriptor() const { return descriptor_.get(); }
    // The signal that has come; 0 where none has.
    int take() const {
        signalfd_siginfo info{};
        return ::read(descriptor_.get(), &info, sizeof(info)) == sizeof(info)
                   ? static_cast<int>(info.ssi_signo)
                   : 0;
    }

private:
    sigset_t watched_{};
    sigset_t before_{};
    UniqueFd descriptor_;
};

std::uint64_t random_number() {
    std::uint64_t value = 0;
    if (::getrandom(&value, sizeof(value), 0) != sizeof(value)) {
        throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    return std::max<std::uint64_t>(value, 1);
}

class Copies {
public:
    Copies(int ranks, std::vector<std::string> command) : directory_("symm-ranks-") {
        // Not argv[0], which may name another file by now, or need PATH.
        if (command.empty()) {
            command = own_arguments();
        }
        command.at(0) = "/proc/self/exe";
        for (int rank = 0; rank < ranks; ++rank) {
            Command one;
            one.arguments = command;
            one.environment = {
                fmt::format("SYMM_RANK={}", rank), fmt::format("SYMM_RANKS={}", ranks),
                fmt::format("SYMM_RUN={}", run_), fmt::format("SYMM_PARENT={}", ::getpid()),
                fmt::format("SYMM_RENDEZVOUS={}", directory_.path().string())};
            processes_.emplace_back(one);
        }
    }

    // Waits for the end of all; returns the signal that interrupted it, or 0.
    int wait(const SignalWatch& signals) {
        std::vector<bool> running(processes_.size(), true);
        std::optional<Deadline> patience;  // since one has failed
        while (std::find(running.begin(), running.end(), true) != running.end()) {
            // All others have said what they had to say: only one that is stuck is still missing.
            if (patience && std::count(running.begin(), running.end(), true) == 1 &&
                patience->limit() > kTimeToFollow) {
                patience = Deadline::after(
                    std::min<std::chrono::nanoseconds>(patience->left(), kTimeToFollow));
            }
            std::vector<int> watched{signals.descriptor()};
            bool all_watched = true;
            for (std::size_t i = 0; i < processes_.size(); ++i) {
                watched.push_back(running[i] ? processes_[i].handle() : -1);
                all_watched = all_watched && (!running[i] || watched.back() >= 0);
            }
            Deadline look = Deadline::after(all_watched ? std::chrono::seconds(60) : kLookAgain);
            if (patience && patience->left() < look.left()) {
                look = *patience;
            }
            wait_readable(watched, look);
            if (const int signal = signals.take()) {
                return signal;
            }
            for (std::size_t i = 0; i < processes_.size(); ++i) {
                if (!running[i]) {
                    continue;
                }
                if (const auto status = processes_[i].wait(Deadline::after({}))) {
                    running[i] = false;
                    if (!note(static_cast<int>(i), *status)) {
                        if (!patience) {
                            patience = Deadline::after(Deadline::standard_limit() + kTimeToNotice);
                        }
                    }
                } else if (patience && patience->passed()) {
                    processes_[i].signal(SIGKILL);
                    processes_[i].wait(Deadline::after(kTimeToObey));
                    running[i] = false;
                    RankFailure stuck;
                    stuck.rank = static_cast<int>(i);
                    stuck.told = true;
                    stuck.text = fmt::format(
                        "rank {} did not end after another had failed, and was killed", i);
                    failures.push_back(stuck);
                }
            }
        }
        return 0;
    }

    // Ends what still runs, politely at first.
    void end_all(int signal) {
        for (Process& process : processes_) {
            process.signal(signal);
        }
        const Deadline deadline = Deadline::after(kTimeToObey);
        for (Process& process : processes_) {
            process.wait(deadline);
        }
        processes_.clear();  // kills and reaps the rest
    }

    std::vector<RankFailure> failures;

private:
    static constexpr std::chrono::nanoseconds kLookAgain = std::chrono::milliseconds(20);

    // Takes down how a rank has ended; true where that was well.
    bool note(int rank, const ExitStatus& status) {
        RankFailure failure;
        if (auto left = find_note(directory_.path(), rank)) {
            failure = *left;
        } else if (status.success()) {
            return true;
        } else {
            failure.rank = rank;
            failure.when = std::chrono::steady_clock::now().time_since_epoch().count();
            failure.text =
                fmt::format("rank {} (pid {}) {}", rank,
                            processes_[static_cast<std::size_t>(rank)].id(), status.describe());
        }
        failure.killed = status.signal != 0;
        failures.push_back(failure);
        // Some may be waiting for it to come to the meeting.
        Bootstrap::call_off({rank, static_cast<int>(processes_.size()), directory_.path(), run_},
                            failure.text);
        return false;
    }

    PrivateDirectory directory_;  // goes last
    std::uint64_t run_ = random_number();
    std::vector<Process> processes_;
};

}  // namespace

std::vector<RankFailure> run_copies(int ranks, const std::vector<std::string>& command) {
    int signal = 0;
    {
        const SignalWatch signals;
        Copies copies(ranks, command);
        signal = copies.wait(signals);
        if (signal == 0) {
            return copies.failures;
        }
        copies.end_all(signal);
    }
    ::raise(signal);  // nothing is left behind: now as if it had not been caught
    throw std::runtime_error(fmt::format("interrupted by signal {}", signal));
}

}  // namespace symm
