#include "common/ranks/spawn.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <stdexcept>

#include "common/environment/environment.hpp"
#include "common/log/log.hpp"
#include "common/sys/number.hpp"
#include "common/sys/process.hpp"
#include "common/sys/socket.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

/// For the other ranks of a run that has failed. All that wait notice within a few seconds.
constexpr std::chrono::seconds kTimeToEnd{4};
constexpr std::chrono::seconds kTimeToObey{2};
/// How often to look for ranks that are stopped: nothing tells.
constexpr std::chrono::seconds kLookAgain{1};

// Turns the signals that would end this process into something that can be waited for.
class SignalWatch {
public:
    SignalWatch() {
        sigemptyset(&watched_);
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
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

struct Child {
    int rank;
    UniqueFd control;
    Process process;
    std::optional<Deadline> stopped;  // until when it may be
};

class Children {
public:
    Children(int ranks, std::vector<std::string> command) {
        // Not argv[0], which may name another file by now, or need PATH.
        if (command.empty()) {
            command = own_arguments();
        }
        command.at(0) = "/proc/self/exe";
        auto connections = connected_sockets(ranks);
        for (int rank = 0; rank < ranks; ++rank) {
            auto [ours, theirs] = socket_pair();
            Connections& given = connections[static_cast<std::size_t>(rank)];
            std::vector<UniqueFd> valid;  // without rank 0's empty place
            for (UniqueFd& one : given) {
                if (one) {
                    valid.push_back(std::move(one));
                }
            }
            send_packet(ours.get(), std::vector<std::byte>(1), valid, Deadline::standard());
            Command one;
            one.arguments = command;
            one.environment = {fmt::format("SYMM_RANK={}", rank),
                               fmt::format("SYMM_RANKS={}", ranks),
                               fmt::format("SYMM_CONTROL={}", theirs.get())};
            one.inherited = theirs.get();
            children_.push_back({rank, std::move(ours), Process(one), {}});
        }
    }

    // Waits for the end of all; returns the signal that interrupted it, or 0.
    int wait(const SignalWatch& signals) {
        while (!children_.empty()) {
            std::vector<int> watched{signals.descriptor()};
            for (const Child& child : children_) {
                watched.push_back(child.process.handle());
            }
            wait_readable(watched,
                          Deadline::earlier(Deadline::after(kLookAgain),
                                            patience_.value_or(Deadline::after(kLookAgain))));
            if (const int signal = signals.take()) {
                return signal;
            }
            std::erase_if(children_, [&](Child& child) { return has_ended(child); });
        }
        return 0;
    }

    // Ends what still runs, politely at first.
    void end_all(int signal) {
        for (Child& child : children_) {
            child.process.signal(signal);
        }
        const Deadline deadline = Deadline::after(kTimeToObey);
        for (Child& child : children_) {
            child.process.wait(deadline);
        }
        children_.clear();  // kills and reaps the rest
    }

    std::vector<RankFailure> failures;

private:
    // Takes down how a rank has ended, or ends one that is stuck.
    bool has_ended(Child& child) {
        const auto status = child.process.wait(Deadline::after({}));
        if (status) {
            RankFailure failure =
                failure_now(child.rank, fmt::format("rank {} (pid {}) {}", child.rank,
                                                    child.process.id(), status->describe()));
            const bool reported = take_report(child.control.get(), failure);
            failure.killed = status->signal != 0;
            if (reported || !status->success()) {
                add(failure);
            }
            return true;
        }
        const bool is_stopped = child.process.is_stopped();
        if (!is_stopped) {
            child.stopped.reset();
        } else if (!child.stopped) {
            child.stopped = Deadline::after(Deadline::standard_limit() + kTimeToEnd);
        }
        if (!(patience_ && patience_->passed()) && !(is_stopped && child.stopped->passed())) {
            return false;
        }
        RankFailure stuck = failure_now(
            child.rank,
            fmt::format("rank {} (pid {}) {}", child.rank, child.process.id(),
                        is_stopped ? "was stopped by a signal and did not go on (SIGCONT)"
                                   : "did not end after another rank had failed, and was killed"));
        // What the others said of it is told first: it says what they waited for.
        stuck.remote = !failures.empty();
        log::warn("{}", stuck.text);
        add(stuck);
        child.process.signal(SIGKILL);
        child.process.wait(Deadline::after(kTimeToObey));
        return true;
    }

    void add(const RankFailure& failure) {
        failures.push_back(failure);
        patience_ = patience_.value_or(Deadline::after(kTimeToEnd));
    }

    std::vector<Child> children_;
    std::optional<Deadline> patience_;  // since one has failed
};

}  // namespace

std::vector<RankFailure> spawn_ranks(int ranks, const std::vector<std::string>& command) {
    int signal = 0;
    {
        const SignalWatch signals;
        Children children(ranks, command);
        signal = children.wait(signals);
        if (signal == 0) {
            return children.failures;
        }
        children.end_all(signal);
    }
    ::raise(signal);  // nothing is left behind: now as if it had not been caught
    throw std::runtime_error(fmt::format("interrupted by signal {}", signal));
}

std::optional<SpawnedRank> spawned_rank() {
    const auto refuse = [](const char* name) {
        throw UsageError(
            fmt::format("SYMM_RANK is set and {} makes no sense: unset SYMM_RANK, "
                        "which is for programs that start copies of themselves",
                        name));
    };
    const auto number = [&](const char* name, int least, int most) {
        const auto value = number_in(env::foreign(name), least, most);
        if (!value) {
            refuse(name);
        }
        return *value;
    };
    if (env::text("SYMM_RANK").empty()) {
        return {};
    }
    SpawnedRank self;
    self.size = number("SYMM_RANKS", 1, kMaxRanks);
    self.rank = number("SYMM_RANK", 0, self.size - 1);
    const int control = number("SYMM_CONTROL", 0, std::numeric_limits<int>::max());
    ucred parent{};
    socklen_t bytes = sizeof(parent);
    if (::getsockopt(control, SOL_SOCKET, SO_PEERCRED, &parent, &bytes) != 0) {
        refuse("SYMM_CONTROL");
    }
    self.parent = UniqueFd(control);
    ::fcntl(control, F_SETFD, FD_CLOEXEC);
    die_with_parent(parent.pid);
    return self;
}

Connections SpawnedRank::connections() const {
    Packet packet;
    receive_packet(parent.get(), 1, packet, Deadline::standard());
    const std::size_t expected = rank == 0 ? static_cast<std::size_t>(size) - 1 : 1;
    if (packet.descriptors.size() != expected) {
        throw std::runtime_error(fmt::format(
            "got {} of {} connections to the other ranks{}", packet.descriptors.size(), expected,
            packet.cut ? ": this process has too many files open, raise `ulimit -n`" : ""));
    }
    Connections connections = std::move(packet.descriptors);
    if (rank == 0) {
        connections.emplace(connections.begin());
    }
    return connections;
}

}  // namespace symm
