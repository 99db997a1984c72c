// Joining: the first row of the table in socket_bootstrap.hpp. Rank 0 is the root, to which the
// others connect.

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/sys/log.hpp"
#include "common/sys/socket.hpp"

namespace symm {
namespace {

// How long a connection may take to send its HELLO.
constexpr std::chrono::seconds kSilence{5};

// What to do if ranks do not find each other. A socket's abstract name is known in one network
// namespace only.
constexpr std::string_view kHowToMeet =
    "Ranks find each other if one launcher started them all, or if all have the same "
    "SYMM_BOOTSTRAP. Ranks in several containers have to share a network namespace (docker run "
    "--network host)";

UniqueFd listen_as_root(std::string_view name) {
    try {
        return listen_at(name, kMaxRanks);
    } catch (const std::system_error& error) {
        if (error.code().value() != EADDRINUSE) {
            throw;
        }
        throw BootstrapError(
            0, false,
            "another process listens at '{}', where this run's ranks meet. Give each "
            "run its own name (SYMM_BOOTSTRAP)",
            name);
    }
}

// Rank 0's part.
class Root {
public:
    Root(int size, std::string_view name, Deadline deadline)
        : size_(size),
          name_(name),
          deadline_(deadline),
          listener_(listen_as_root(name)),
          connections_(static_cast<std::size_t>(size)) {}

    Connections accept_all() {
        try {
            while (!missing().empty()) {
                step();
            }
        } catch (const BootstrapError& error) {
            send_to_all(connections_, message(MessageKind::kFail, error.rank(), error.what()));
            throw;
        }
        send_to_all(connections_, message(MessageKind::kWelcome, 0, ""));
        return std::move(connections_);
    }

private:
    std::vector<int> missing() const {
        std::vector<int> ranks;
        for (int rank = 1; rank < size_; ++rank) {
            if (!connections_[static_cast<std::size_t>(rank)]) {
                ranks.push_back(rank);
            }
        }
        return ranks;
    }

    // Waits for a connection or a lost rank, and handles every one that is ready.
    void step() {
        std::vector<int> watched{listener_.get()};
        for (const UniqueFd& connection : connections_) {
            watched.push_back(connection.get());
        }
        for (const std::size_t index : wait_readable(watched, deadline_)) {
            if (index == 0) {
                accept_one();
            } else {  // a rank sends nothing after its HELLO: it has closed
                const int rank = static_cast<int>(index) - 1;
                throw BootstrapError(
                    rank, true,
                    "rank {} (pid {}) closed its connection while the ranks were joining", rank,
                    peer_credentials(watched[index]).pid);
            }
        }
        if (const auto ranks = missing(); !ranks.empty() && deadline_.passed()) {
            throw BootstrapError(ranks.front(), false,
                                 "{} {} of {} did not join within {:.3g} s at the socket '{}'. {}",
                                 ranks.size() == 1 ? "rank" : "ranks",
                                 fmt::format("{}", fmt::join(ranks, ", ")), size_,
                                 deadline_.seconds(), name_, kHowToMeet);
        }
    }

    void accept_one() {
        UniqueFd socket = accept_now(listener_);
        if (!socket) {
            return;
        }
        if (const uid_t user = peer_credentials(socket.get()).uid; user != ::geteuid()) {
            refuse(socket,
                   fmt::format("it belongs to user {}, this run to user {}", user, ::geteuid()));
        } else {
            hear(std::move(socket));
        }
    }

    // Receives the first packet of a connection: the HELLO of a rank, or anything else.
    void hear(UniqueFd socket) {
        SocketPacket packet;
        const Io io = receive_packet(socket.get(), kMaxMessage, packet,
                                     Deadline::earlier(deadline_, Deadline::after(kSilence)));
        std::string why_not;
        const auto hello = decode(packet.bytes, why_not);
        if (io == Io::kLate) {
            why_not = "it sent nothing";
        } else if (io == Io::kClosed) {
            why_not = "it closed the connection before sending a HELLO";
        } else if (packet.cut) {
            why_not = fmt::format("its first message is longer than {} bytes", kMaxMessage);
        } else if (!hello) {
            // decode() has set it
        } else if (hello->kind != MessageKind::kHello || !packet.descriptors.empty()) {
            why_not = "its first message is not a HELLO";
        } else if (hello->size != size_) {
            why_not = fmt::format("it claims to be rank {} of {}, but this run has {} ranks",
                                  hello->rank, hello->size, size_);
        } else if (hello->rank == 0 || connections_[static_cast<std::size_t>(hello->rank)]) {
            why_not = fmt::format("there is already a rank {}", hello->rank);
        } else if (hello->deadline.passed()) {
            why_not = "its deadline has passed";
        }
        if (why_not.empty()) {
            deadline_ = Deadline::earlier(deadline_, hello->deadline);
            connections_[static_cast<std::size_t>(hello->rank)] = std::move(socket);
        } else {
            refuse(socket, why_not);
        }
    }

    void refuse(const UniqueFd& socket, const std::string& why) const {
        log::warn("bootstrap: refused process {}: {}", peer_credentials(socket.get()).pid, why);
        send_to_all({&socket, 1}, message(MessageKind::kRefused, 0, why));
    }

    Message message(MessageKind kind, int rank, std::string_view text) const {
        return {kind, std::max(rank, 0), size_, 0, deadline_, "join", as_payload(text)};
    }

    int size_;
    std::string name_;
    Deadline deadline_;  // the earliest of all ranks that have joined
    UniqueFd listener_;
    Connections connections_;
    ClosedOnFork listener_closed_{{&listener_, 1}};  // a child would keep the name in use
    ClosedOnFork connections_closed_{connections_};
};

// Another rank's part: sends HELLO and waits for WELCOME.
UniqueFd connect_to_root(int rank, int size, std::string_view name, Deadline deadline) {
    const auto give_up = [&](int culprit, bool remote, const std::string& text) {
        throw BootstrapError(culprit, remote, "rank {} of {} cannot join: {}", rank, size, text);
    };
    const std::string late =
        fmt::format("no word from rank 0 within {:.3g} s at the socket '{}'. {}",
                    deadline.seconds(), name, kHowToMeet);
    UniqueFd root = connect_to(name, deadline);
    const ClosedOnFork closed({&root, 1});
    if (!root) {
        give_up(0, false, late);
    }
    if (const ucred peer = peer_credentials(root.get()); peer.uid != ::geteuid()) {
        give_up(-1, false,
                fmt::format("process {} of user {} listens at '{}'. Set SYMM_BOOTSTRAP to a name "
                            "that others cannot guess",
                            peer.pid, peer.uid, name));
    }
    // The result is not checked: if the root has refused this rank, its answer says why.
    send_packet(root.get(), encode({MessageKind::kHello, rank, size, 0, deadline, "join", {}}), {},
                deadline);

    SocketPacket packet;
    const Io io = receive_packet(root.get(), kMaxMessage, packet, with_grace(deadline));
    if (io == Io::kLate) {
        give_up(0, false, late);
    } else if (io == Io::kClosed) {
        give_up(0, true, "rank 0 closed its connection while the ranks were joining");
    }
    std::string why_not = "it is too long";
    const auto answer = decode(packet.bytes, why_not);
    if (!answer || packet.cut) {
        give_up(0, false, "rank 0's answer cannot be understood: " + why_not);
    } else if (answer->kind == MessageKind::kFail) {
        throw BootstrapError(answer->rank, true, as_text(answer->payload));
    } else if (answer->kind == MessageKind::kRefused) {
        give_up(rank, false, "rank 0 refused it: " + as_text(answer->payload));
    } else if (answer->kind != MessageKind::kWelcome) {
        give_up(0, false, fmt::format("rank 0 answered with {}", name_of(answer->kind)));
    }
    return root;
}

}  // namespace

std::unique_ptr<SocketBootstrap> join(int rank, int size, std::string_view name,
                                      Deadline deadline) {
    if (size < 1 || size > kMaxRanks || rank < 0 || rank >= size) {
        throw BootstrapError(rank, false, "there is no rank {} of {}: 1 to {} ranks can join", rank,
                             size, kMaxRanks);
    }
    Connections connections;
    if (rank == 0) {
        connections = Root(size, name, deadline).accept_all();
    } else {
        connections.push_back(connect_to_root(rank, size, name, deadline));
    }
    return std::make_unique<SocketBootstrap>(rank, size, std::move(connections),
                                             with_grace(deadline));
}

}  // namespace symm
