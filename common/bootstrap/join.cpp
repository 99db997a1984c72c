// How ranks meet: the first row of the table in rendezvous.hpp.

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "common/bootstrap/connections.hpp"
#include "common/log/log.hpp"
#include "common/sys/remove_on_signal.hpp"

namespace symm {
namespace detail {

std::string list_ranks(const std::vector<int>& ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    }
    return text;
}

void tell(int socket, const Message& message) noexcept {
    try {
        send_packet(socket, encode(message), {}, Deadline::after(std::chrono::seconds(1)));
    } catch (const std::exception&) {  // this is about a failure already
    }
}

}  // namespace detail

namespace {

using namespace detail;

// A connection that has not said yet who it is has this long, and this many may be in that state.
constexpr std::chrono::seconds kSilence{5};
constexpr std::size_t kMaxPending = 2 * kMaxRanks;

// How often a rank that waits looks whether the meeting has been called off.
constexpr std::chrono::milliseconds kLook{100};

std::filesystem::path hub_path(const RankInfo& info) {
    return info.directory / "hub";
}

std::filesystem::path verdict_path(const RankInfo& info) {
    return info.directory / fmt::format("called_off.{:x}", info.run);
}

void throw_if_called_off(const RankInfo& info) {
    if (info.run != 0 && std::filesystem::exists(verdict_path(info))) {
        std::ifstream file(verdict_path(info), std::ios::binary);
        const std::string text(std::istreambuf_iterator<char>(file), {});
        throw BootstrapError(text, -1, true);
    }
}

UniqueFd listen_as_hub(const RankInfo& info) {
    try {
        return listen_at(hub_path(info), kMaxRanks);
    } catch (const std::system_error& error) {
        if (error.code().value() != EADDRINUSE) {
            throw;
        }
    }
    // A socket is there. A run that is meeting answers; what a killed one has left does not.
    if (connect_to(hub_path(info), Deadline::after(std::chrono::nanoseconds(0)))) {
        throw BootstrapError(
            fmt::format("another run is meeting at {}. Give each run a directory of "
                        "its own (SYMM_RENDEZVOUS).",
                        hub_path(info).string()),
            0, false);
    }
    std::filesystem::remove(hub_path(info));
    return listen_at(hub_path(info), kMaxRanks);
}

// Rank 0's part of the meeting.
class Hub {
public:
    Hub(const RankInfo& info, Deadline deadline) : info_(info), deadline_(deadline) {
        const SignalsHeld until_announced;
        listener_ = listen_as_hub(info);
        remove_on_signal(hub_path(info_), OnSignal::kRemoveOne);
        connections.resize(static_cast<std::size_t>(info.size));
        processes.assign(static_cast<std::size_t>(info.size), 0);
        processes[0] = ::getpid();
    }
    // From here on strangers find nobody.
    ~Hub() {
        std::error_code ignored;
        std::filesystem::remove(hub_path(info_), ignored);
        keep_on_signal(hub_path(info_));
    }
    Hub(const Hub&) = delete;
    Hub& operator=(const Hub&) = delete;

    void meet() {
        try {
            while (!missing().empty()) {
                step();
            }
        } catch (const BootstrapError& error) {
            broadcast(MessageKind::kFail, error.culprit(), as_payload(error.what()));
            Bootstrap::call_off(info_, error.what());  // for those who have not come yet
            throw;
        }
        const auto ids = std::as_bytes(std::span(processes));
        broadcast(MessageKind::kWelcome, 0, {ids.begin(), ids.end()});
    }

    std::vector<UniqueFd> connections;  // by rank
    std::vector<int> processes;
    std::vector<std::string> refusals;

private:
    struct Pending {
        UniqueFd socket;
        Deadline until;
    };

    std::vector<int> missing() const {
        std::vector<int> ranks;
        for (int rank = 1; rank < info_.size; ++rank) {
            if (!connections[static_cast<std::size_t>(rank)]) {
                ranks.push_back(rank);
            }
        }
        return ranks;
    }

    // Waits for anything to happen and deals with it: a connection, a hello, a rank that is lost.
    void step() {
        std::vector<int> watched{pending_.size() < kMaxPending ? listener_.get() : -1};
        Deadline until = earlier(deadline_, Deadline::after(kLook));
        for (const Pending& one : pending_) {
            watched.push_back(one.socket.get());
            until = earlier(until, one.until);
        }
        for (const UniqueFd& connection : connections) {
            watched.push_back(connection.get());
        }
        const auto ready = wait_readable(watched, until);
        throw_if_called_off(info_);
        if (deadline_.passed()) {
            throw BootstrapError(fmt::format("{} of {} did not come within {:.3g} s to meet at {}",
                                             list_ranks(missing()), info_.size, deadline_.seconds(),
                                             hub_path(info_).string()),
                                 missing().front(), false);
        }
        const std::size_t known = pending_.size();
        for (std::size_t i = 0; i < known; ++i) {
            if (std::find(ready.begin(), ready.end(), i + 1) != ready.end()) {
                hear(std::move(pending_[i].socket));
            } else if (pending_[i].until.passed()) {
                refuse(std::exchange(pending_[i].socket, {}), "it said nothing");
            }
        }
        std::erase_if(pending_, [](const Pending& one) { return !one.socket; });
        for (const std::size_t index : ready) {
            if (index == 0) {
                greet();
            } else if (index > known) {
                lose(static_cast<int>(index - 1 - known));
            }
        }
    }

    void greet() {
        UniqueFd socket = accept_now(listener_);
        if (!socket) {
            return;
        }
        const ucred peer = peer_credentials(socket.get());
        if (peer.uid != ::geteuid()) {
            refuse(socket, fmt::format("it belongs to user {}, this run to user {}", peer.uid,
                                       ::geteuid()));
            return;
        }
        pending_.push_back({std::move(socket), Deadline::after(kSilence)});
    }

    // A connection has said something: a rank's hello, or whatever a stranger says.
    void hear(UniqueFd socket) {
        Packet packet;
        std::string why_not;
        if (receive_packet(socket.get(), kMaxMessage, packet, Deadline::after({})) != Io::kDone) {
            refuse(socket, "it closed the connection before it said who it is");
            return;
        }
        std::optional<Message> hello;
        if (packet.cut) {
            why_not = fmt::format("its first message is longer than {} bytes", kMaxMessage);
        } else {
            hello = decode(packet.bytes, why_not);
        }
        if (!hello) {
            refuse(socket, why_not);
            return;
        }
        UniqueFd& place =
            connections[static_cast<std::size_t>(std::min(hello->rank, info_.size - 1))];
        if (hello->kind != MessageKind::kHello || !packet.descriptors.empty()) {
            why_not = "its first message is no hello";
        } else if (hello->run != info_.run) {
            why_not = "it belongs to another run";
        } else if (hello->size != info_.size) {
            why_not = fmt::format("it says rank {} of {}, and this run has {} ranks", hello->rank,
                                  hello->size, info_.size);
        } else if (hello->rank == 0 || place) {
            why_not = fmt::format("there is a rank {} already", hello->rank);
        }
        if (!why_not.empty()) {
            refuse(socket, why_not);
            return;
        }
        deadline_ = earlier(deadline_, patience_of(*hello));
        processes[static_cast<std::size_t>(hello->rank)] = peer_credentials(socket.get()).pid;
        place = std::move(socket);
    }

    void refuse(const UniqueFd& socket, const std::string& why) {
        const int process = peer_credentials(socket.get()).pid;
        refusals.push_back(fmt::format("process {}: {}", process, why));
        log::warn("rendezvous: refused process {}: {}", process, why);
        Message message;
        message.kind = MessageKind::kRefused;
        message.size = info_.size;
        message.payload = as_payload(why);
        tell(socket.get(), message);
    }

    // A rank that has come says nothing more until it is welcomed.
    [[noreturn]] void lose(int rank) {
        throw BootstrapError(
            fmt::format("rank {} (pid {}) closed its connection while the ranks were meeting", rank,
                        processes[static_cast<std::size_t>(rank)]),
            rank, true);
    }

    void broadcast(MessageKind kind, int rank, std::vector<std::byte> payload) {
        Message message;
        message.kind = kind;
        message.rank = std::max(rank, 0);
        message.size = info_.size;
        message.run = info_.run;
        message.payload = std::move(payload);
        for (const UniqueFd& connection : connections) {
            if (connection) {
                tell(connection.get(), message);
            }
        }
    }

    RankInfo info_;
    Deadline deadline_;
    UniqueFd listener_;
    // Closed after a failure has been told, not before: so never in a local variable.
    std::vector<Pending> pending_;
};

// Another rank's part: says hello and waits to be welcomed.
UniqueFd meet_hub(const RankInfo& info, Deadline deadline, std::vector<int>& processes) {
    const auto give_up = [&](const std::string& text, int culprit, bool told) {
        throw BootstrapError(
            fmt::format("rank {} of {} cannot join: {}", info.rank, info.size, text), culprit,
            told);
    };
    const std::string late = fmt::format("no word from rank 0 within {:.3g} s at {}",
                                         deadline.seconds(), hub_path(info).string());
    UniqueFd hub;
    while (!hub) {
        hub = connect_to(hub_path(info), earlier(deadline, Deadline::after(kLook)));
        throw_if_called_off(info);
        if (!hub && deadline.passed()) {
            give_up(late, 0, false);
        }
    }
    if (peer_credentials(hub.get()).uid != ::geteuid()) {
        give_up(fmt::format("{} belongs to user {}", hub_path(info).string(),
                            peer_credentials(hub.get()).uid),
                -1, false);
    }
    Message hello;
    hello.kind = MessageKind::kHello;
    hello.rank = info.rank;
    hello.size = info.size;
    hello.run = info.run;
    hello.left_ns = static_cast<std::uint64_t>(deadline.left().count());
    // Whatever became of the hello: what the hub has said tells more.
    send_packet(hub.get(), encode(hello), {}, deadline);

    Packet packet;
    const Io io = receive_packet(hub.get(), kMaxMessage, packet, with_grace(deadline));
    if (io != Io::kDone) {
        throw_if_called_off(info);
    }
    if (io == Io::kLate) {
        give_up(late, 0, false);
    }
    if (io == Io::kClosed) {
        give_up("rank 0 closed its connection while the ranks were meeting", 0, true);
    }
    std::string why_not;
    const auto answer = decode(packet.bytes, why_not);
    if (!answer || packet.cut) {
        give_up("rank 0's answer cannot be understood: " + why_not, 0, false);
    } else if (answer->kind == MessageKind::kFail) {
        throw BootstrapError(as_text(answer->payload), answer->rank, true);
    } else if (answer->kind == MessageKind::kRefused) {
        give_up("rank 0 refused it: " + as_text(answer->payload), info.rank, false);
    } else if (answer->kind != MessageKind::kWelcome ||
               answer->payload.size() != static_cast<std::size_t>(info.size) * sizeof(int)) {
        give_up(fmt::format("rank 0 answered with a message of kind {}", name_of(answer->kind)), 0,
                false);
    } else {
        processes.resize(static_cast<std::size_t>(info.size));
        std::memcpy(processes.data(), answer->payload.data(), answer->payload.size());
    }
    return hub;
}

}  // namespace

void Bootstrap::call_off(const RankInfo& info, std::string_view text) noexcept {
    if (info.run == 0) {
        return;
    }
    try {
        // Complete before it has its name: the others read it the moment it is there.
        auto draft = verdict_path(info);
        draft += fmt::format(".{}", info.rank);
        std::ofstream(draft, std::ios::binary) << text;
        std::filesystem::rename(draft, verdict_path(info));
    } catch (const std::exception&) {  // then they wait
    }
}

Bootstrap Bootstrap::join(const RankInfo& info, Deadline deadline) {
    if (info.size < 1 || info.size > kMaxRanks || info.rank < 0 || info.rank >= info.size) {
        throw BootstrapError(fmt::format("there is no rank {} of {}: 1 to {} ranks can meet",
                                         info.rank, info.size, kMaxRanks),
                             info.rank, false);
    }
    auto meeting = std::make_unique<Meeting>();
    meeting->info = info;
    if (info.rank == 0) {
        Hub hub(info, deadline);
        hub.meet();
        meeting->connections = std::move(hub.connections);
        meeting->processes = std::move(hub.processes);
        meeting->refusals = std::move(hub.refusals);
    } else {
        meeting->connections.push_back(meet_hub(info, deadline, meeting->processes));
    }
    return Bootstrap(std::move(meeting));
}

}  // namespace symm
