#include "common/ranks/spawn.hpp"

#include <fcntl.h>
#include <fmt/core.h>

#include <csignal>
#include <limits>
#include <stdexcept>

#include "common/sys/environment.hpp"
#include "common/sys/log.hpp"
#include "common/sys/number.hpp"
#include "common/sys/process.hpp"
#include "common/sys/socket.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

/// How long the other ranks may still run after one has failed. Those that wait notice within a few
/// seconds.
constexpr std::chrono::seconds kTimeToEnd{4};
/// How long to wait for the end of a rank after SIGKILL.
constexpr std::chrono::seconds kTimeToObey{2};
/// How often to look for stopped ranks: no event reports them.
constexpr std::chrono::seconds kLookAgain{1};

struct Child {
    int rank;
    UniqueFd control;
    Process process;
    std::optional<Deadline> stopped;  // set while it is stopped: how long it may stay so
};

class Children {
public:
    Children(int ranks, std::vector<std::string> command) {
        if (command.empty()) {
            command = own_arguments();
        }
        // The running file: argv[0] may name another file by now, or need PATH.
        command.at(0) = "/proc/self/exe";
        auto connections = connected_sockets(ranks);
        for (int rank = 0; rank < ranks; ++rank) {
            auto [ours, theirs] = socket_pair();
            Connections& given = connections[static_cast<std::size_t>(rank)];
            std::vector<UniqueFd> valid;  // rank 0's place for itself is empty
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

    // Waits until all have ended.
    void wait() {
        while (!children_.empty()) {
            std::vector<int> watched;
            for (const Child& child : children_) {
                watched.push_back(child.process.handle());
            }
            const Deadline look_again = Deadline::after(kLookAgain);
            wait_readable(watched, Deadline::earlier(look_again, patience_.value_or(look_again)));
            std::erase_if(children_, [&](Child& child) { return has_ended(child); });
        }
    }

    std::vector<RankFailure> failures;

private:
    // Records how a rank has ended; kills one that is stuck. False while the rank may go on.
    bool has_ended(Child& child) {
        const auto status = child.process.wait(Deadline::after({}));
        if (status) {
            RankFailure failure = failure_now(
                child.rank,
                fmt::format("rank {} (pid {}) {}{}", child.rank, child.process.id(),
                            status->describe(),
                            status->success() ? ", but had not finished its work" : ""));
            const Heard heard = take_report(child.control.get(), failure);
            failure.killed = status->signal != 0;
            if (heard != Heard::kItsEnd || (status->is_known && !status->success())) {
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
                        is_stopped ? "was stopped by a signal and not continued (SIGCONT)"
                                   : "did not end after another rank had failed, and was killed"));
        // The others' reports count as the cause: they say what those ranks waited for.
        stuck.remote = !failures.empty();
        log::warn("{}", stuck.text);
        add(stuck);
        child.process.signal(SIGKILL);
        static_cast<void>(child.process.wait(Deadline::after(kTimeToObey)));  // killed
        return true;
    }

    void add(const RankFailure& failure) {
        failures.push_back(failure);
        patience_ = patience_.value_or(Deadline::after(kTimeToEnd));
    }

    std::vector<Child> children_;
    std::optional<Deadline> patience_;  // set when the first rank has failed
};

}  // namespace

std::vector<RankFailure> spawn_ranks(int ranks, const std::vector<std::string>& command) {
    Children children(ranks, command);
    children.wait();
    return children.failures;
}

std::optional<SpawnedRank> spawned_rank() {
    const auto refuse = [](const char* name) {
        throw UsageError(
            "SYMM_RANK is set, but {} is invalid: unset SYMM_RANK, which is for "
            "programs that start copies of themselves",
            name);
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
    SocketPacket packet;
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
