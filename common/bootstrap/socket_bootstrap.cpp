// Calls and failures: the second and third rows of the table in socket_bootstrap.hpp. Joining, the
// first row, is in join.cpp.

#include "common/bootstrap/socket_bootstrap.hpp"

#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <numeric>
#include <utility>

#include "common/sys/error_text.hpp"
#include "common/sys/socket.hpp"

namespace symm {
namespace {

// async_error() reports a rank as lost this long after it closed its connection: at the end of a
// run a rank may leave while a peer's kernel still runs its last instructions.
constexpr std::chrono::seconds kLeave{3};

constexpr std::string_view kAborted = "it was aborted";

std::string call_name(MessageKind kind, std::string_view name) {
    return fmt::format("{} '{}'", name_of(kind), name);
}

}  // namespace

// A call on one rank. `local` is the message that this rank contributes, without descriptors.
class SocketBootstrap::Call {
public:
    Call(const SocketBootstrap& self, Message local, std::span<const UniqueFd> descriptors)
        : self_(self),
          local_(std::move(local)),
          descriptors_(descriptors),
          deadline_(local_.deadline) {}

    // The contributions of all ranks, by rank.
    std::vector<SocketPacket> run() {
        std::vector<SocketPacket> all(static_cast<std::size_t>(self_.size_));
        self_.rank_ == 0 ? as_root(all) : as_other(all);
        return all;
    }

private:
    int socket_of(int rank) const {
        return self_.connections_[static_cast<std::size_t>(rank)].get();
    }
    std::string what() const { return call_name(local_.kind, local_.name); }
    // The number of RESULTs that each rank gets. A barrier's is empty.
    int results() const { return local_.kind == MessageKind::kBarrier ? 1 : self_.size_; }

    void as_root(std::vector<SocketPacket>& all) {
        all[0].bytes = local_.payload;
        for (const UniqueFd& one : descriptors_) {
            all[0].descriptors.push_back(one.duplicate());
        }
        std::vector<int> sockets{-1};  // poll ignores -1
        for (int rank = 1; rank < self_.size_; ++rank) {
            sockets.push_back(socket_of(rank));
        }
        std::vector<int> missing(static_cast<std::size_t>(self_.size_) - 1);
        std::iota(missing.begin(), missing.end(), 1);
        while (!missing.empty()) {
            // Also watches the ranks whose CALL has arrived: one that dies now is named at once.
            const auto ready = wait_readable(sockets, deadline_);
            if (ready.empty()) {
                throw_missing(missing);
            }
            for (const std::size_t index : ready) {
                const int rank = static_cast<int>(index);
                const Message message = receive(rank, deadline_, all[index]);
                require_same_call(message, rank, std::erase(missing, rank) == 1);
                deadline_ = Deadline::earlier(deadline_, message.deadline);
            }
        }
        // Leaves time to name a rank that does not read, before the others blame this one.
        if (deadline_.left() < std::chrono::seconds(1)) {
            deadline_ = Deadline::after(std::chrono::seconds(1));
        }
        for (int to = 1; to < self_.size_; ++to) {
            for (int from = 0; from < results(); ++from) {
                const SocketPacket& part = all[static_cast<std::size_t>(from)];
                send(to, MessageKind::kResult, from, part.bytes, part.descriptors);
            }
        }
    }

    void as_other(std::vector<SocketPacket>& all) {
        send(0, local_.kind, self_.rank_, local_.payload, descriptors_);
        for (int from = 0; from < results(); ++from) {
            const Message message =
                receive(0, with_grace(deadline_), all[static_cast<std::size_t>(from)]);
            if (message.kind != MessageKind::kResult || message.number != local_.number ||
                message.rank != from) {
                throw BootstrapError(0, false, "{} answered {} (call {}) with {} {} of rank {}",
                                     self_.name_of_rank(0), what(), local_.number,
                                     name_of(message.kind), message.number, message.rank);
            }
        }
    }

    // Receives a message; leaves its payload and descriptors in `packet`. Throws the failure if it
    // is a FAIL.
    Message receive(int from, Deadline until, SocketPacket& packet) {
        const Io io = receive_packet(socket_of(from), kMaxMessage, packet, until);
        if (io == Io::kClosed) {
            throw_lost(from);
        }
        if (io == Io::kLate) {
            throw_missing({from});
        }
        std::string why_not =
            "it is too long, or this process has too many files open for its descriptors: "
            "raise `ulimit -n`";
        std::optional<Message> message;
        if (!packet.cut) {
            message = decode(packet.bytes, why_not);
        }
        if (!message) {
            throw BootstrapError(from, false, "the message from {} in {} cannot be read: {}",
                                 self_.name_of_rank(from), what(), why_not);
        }
        if (message->kind == MessageKind::kFail) {
            throw BootstrapError(message->rank, true, as_text(message->payload));
        }
        packet.bytes = std::move(message->payload);
        return *message;
    }

    void send(int to, MessageKind kind, int from, const std::vector<std::byte>& bytes,
              std::span<const UniqueFd> descriptors) {
        const Message message{kind,        from, self_.size_, local_.number, local_.deadline,
                              local_.name, bytes};
        const Io io = send_packet(socket_of(to), encode(message), descriptors, deadline_);
        if (io == Io::kLate) {
            throw BootstrapError(to, false, "{} did not read for {:.3g} s in {}",
                                 self_.name_of_rank(to), deadline_.seconds(), what());
        }
        if (io == Io::kClosed) {
            // It may have sent a FAIL before it closed.
            SocketPacket ignored;
            receive(to, Deadline::after({}), ignored);
            throw_lost(to);
        }
    }

    void require_same_call(const Message& message, int rank, bool expected) const {
        if (message.kind != local_.kind || message.number != local_.number ||
            message.name != local_.name || message.rank != rank || !expected) {
            throw BootstrapError(
                rank, false,
                "{} is in {} (its call {}) while rank 0 is in {} (its call {}). All ranks must "
                "make the same calls in the same order.",
                self_.name_of_rank(rank), call_name(message.kind, message.name), message.number,
                what(), local_.number);
        }
    }

    [[noreturn]] void throw_lost(int rank) const {
        throw BootstrapError(rank, true, "{} closed its connection while rank {} was in {}",
                             self_.name_of_rank(rank), self_.rank_, what());
    }

    [[noreturn]] void throw_missing(const std::vector<int>& missing) const {
        std::vector<std::string> names;
        for (const int rank : missing) {
            names.push_back(self_.name_of_rank(rank));
        }
        throw BootstrapError(missing.front(), false, "no word from {} within {:.3g} s in {}",
                             fmt::format("{}", fmt::join(names, ", ")), deadline_.seconds(),
                             what());
    }

    const SocketBootstrap& self_;
    Message local_;
    std::span<const UniqueFd> descriptors_;
    Deadline deadline_;  // on rank 0: the earliest of all CALLs that have arrived
};

std::vector<Connections> connected_sockets(int size) {
    std::vector<Connections> all(static_cast<std::size_t>(size));
    all.at(0).emplace_back();
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        auto [root, other] = socket_pair();
        all[0].push_back(std::move(root));
        all[rank].push_back(std::move(other));
    }
    return all;
}

void send_to_all(std::span<const UniqueFd> sockets, const Message& message) noexcept {
    const Deadline deadline = Deadline::after(std::chrono::seconds(1));
    for (const UniqueFd& socket : sockets) {
        try {
            if (socket) {
                send_packet(socket.get(), encode(message), {}, deadline);
            }
        } catch (const std::exception&) {  // the caller has an error to report already
        }
    }
}

SocketBootstrap::SocketBootstrap(int rank, int size, Connections connections, Deadline deadline)
    : rank_(rank), size_(size), connections_(std::move(connections)) {
    processes_ = allgather("join", static_cast<int>(::getpid()), deadline);
}

std::string SocketBootstrap::name_of_rank(int rank) const {
    return processes_.empty()
               ? fmt::format("rank {}", rank)
               : fmt::format("rank {} (pid {})", rank, processes_[static_cast<std::size_t>(rank)]);
}

std::optional<BootstrapError> SocketBootstrap::forked() const {
    if (creator_.is_this_one()) {
        return {};
    }
    return BootstrapError(rank_, false,
                          "the connections of rank {} belong to process {}: this process, {}, is a "
                          "child that fork() made of it, and cannot use them. Start ranks as new "
                          "programs (exec, posix_spawn)",
                          rank_, creator_.id(), ::getpid());
}

std::vector<SocketPacket> SocketBootstrap::call(MessageKind kind, std::string_view name,
                                                std::span<const std::byte> bytes,
                                                std::span<const UniqueFd> descriptors,
                                                Deadline deadline) {
    if (const auto error = forked()) {  // first: another thread may have held the mutex
        throw *error;
    }
    const std::lock_guard lock(mutex_);
    if (broken_) {
        throw *broken_;
    }
    try {
        if (descriptors.size() > kMaxDescriptors) {
            throw std::length_error(
                fmt::format("{} descriptors exceed the limit of {} per call. Split them over "
                            "several calls.",
                            descriptors.size(), kMaxDescriptors));
        }
        Message local{kind,
                      rank_,
                      size_,
                      number_++,
                      deadline,
                      std::string(name.substr(0, kMaxName)),
                      {bytes.begin(), bytes.end()}};
        return Call(*this, std::move(local), descriptors).run();
    } catch (const BootstrapError& error) {
        broken_ = aborted_ ? failure(kAborted) : error;
    } catch (const std::exception& error) {  // too many files open, too much to send, ...
        broken_ = failure(error_text(error));
    }
    tell_all(*broken_);
    throw *broken_;
}

std::vector<std::vector<std::byte>> SocketBootstrap::allgather_bytes(
    std::string_view name, std::span<const std::byte> local, Deadline deadline) {
    std::vector<std::vector<std::byte>> all;
    for (SocketPacket& one : call(MessageKind::kAllgather, name, local, {}, deadline)) {
        all.push_back(std::move(one.bytes));
    }
    return all;
}

void SocketBootstrap::barrier(std::string_view name, Deadline deadline) {
    call(MessageKind::kBarrier, name, {}, {}, deadline);
}

std::vector<std::vector<UniqueFd>> SocketBootstrap::exchange(std::string_view name,
                                                             std::span<const UniqueFd> local,
                                                             Deadline deadline) {
    std::vector<std::vector<UniqueFd>> all;
    for (SocketPacket& one : call(MessageKind::kExchange, name, {}, local, deadline)) {
        all.push_back(std::move(one.descriptors));
    }
    return all;
}

std::optional<BootstrapError> SocketBootstrap::async_error(std::string_view waiting_for) {
    if (auto error = forked()) {
        return error;
    }
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) {
        return {};
    }
    if (broken_ || aborted_) {  // abort() makes each connection look closed
        return broken_;
    }
    for (std::size_t i = 0; i < connections_.size() && !broken_; ++i) {
        if (!connections_[i]) {
            continue;
        }
        const Peek peek = peek_at(connections_[i].get(), kHeaderBytes + 4096);
        std::string ignored;
        const auto message = decode(peek.first, ignored);
        if (message && message->kind == MessageKind::kFail) {
            broken_ = BootstrapError(message->rank, true, as_text(message->payload));
        } else if (peek.closed) {
            closed_ = closed_.value_or(Deadline::after(kLeave));
            if (closed_->passed()) {
                const int rank = static_cast<int>(i);
                broken_ = BootstrapError(rank, true,
                                         "{} closed its connection while rank {} waited for {}",
                                         name_of_rank(rank), rank_, waiting_for);
            }
        }
    }
    if (broken_) {
        tell_all(*broken_);
    }
    return broken_;
}

void SocketBootstrap::fail(std::string_view text) noexcept {
    if (!creator_.is_this_one()) {
        return;
    }
    const std::lock_guard lock(mutex_);
    if (!broken_) {  // else all ranks know already
        broken_ = failure(text);
        tell_all(*broken_);
    }
}

void SocketBootstrap::abort() noexcept {
    // Without the lock, which a call may hold: it finds its connections closed. The others are told
    // first, since they find them closed, too.
    if (creator_.is_this_one() && !aborted_.exchange(true)) {
        tell_all(failure(kAborted));
        for (const UniqueFd& connection : connections_) {
            ::shutdown(connection.get(), SHUT_RD);  // an empty one is -1
        }
    }
}

BootstrapError SocketBootstrap::failure(std::string_view text) const {
    return {rank_, false, "rank {} failed: {}", rank_, text};
}

void SocketBootstrap::tell_all(const BootstrapError& error) const noexcept {
    send_to_all(connections_, {.kind = MessageKind::kFail,
                               .rank = error.rank() >= 0 ? error.rank() : rank_,
                               .size = size_,
                               .payload = as_payload(error.what())});
}

}  // namespace symm
