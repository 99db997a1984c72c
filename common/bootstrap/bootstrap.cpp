// The calls, and the look for waits elsewhere: the second and third row of the table in rendezvous.hpp.

#include "common/bootstrap/bootstrap.hpp"

#include <exception>
#include <numeric>

#include "common/bootstrap/connections.hpp"

namespace symm {
namespace {

using namespace detail;

std::vector<UniqueFd> duplicates(std::span<const UniqueFd> descriptors) {
    std::vector<UniqueFd> copies;
    for (const UniqueFd& one : descriptors) {
        copies.push_back(one.duplicate());
    }
    return copies;
}

std::string call_name(MessageKind kind, std::string_view name) {
    return fmt::format("{} '{}'", name_of(kind), name);
}

// A call on one rank. `mine` is the message that this rank contributes, but for its descriptors.
class Call {
public:
    Call(const Meeting& meeting, Message mine, std::span<const UniqueFd> descriptors,
         Deadline deadline)
        : meeting_(meeting),
          info_(meeting.info),
          mine_(std::move(mine)),
          descriptors_(descriptors),
          deadline_(deadline) {}

    Contributions run() { return info_.rank == 0 ? as_hub() : as_other(); }

private:
    std::string rank_name(int rank) const { return meeting_.rank_name(rank); }
    int socket_of(int rank) const {
        return meeting_.connections[static_cast<std::size_t>(rank)].get();
    }
    std::string what() const { return call_name(mine_.kind, mine_.name); }
    // A barrier's result is that it came.
    int results() const { return mine_.kind == MessageKind::kBarrier ? 1 : info_.size; }

    Contributions as_hub() {
        Contributions all(static_cast<std::size_t>(info_.size));
        all[0].bytes = mine_.payload;
        all[0].descriptors = duplicates(descriptors_);
        Deadline until = deadline_;
        std::vector<int> sockets{-1};  // -1: poll leaves it out
        for (int rank = 1; rank < info_.size; ++rank) {
            sockets.push_back(socket_of(rank));
        }
        std::vector<int> missing(static_cast<std::size_t>(info_.size) - 1);
        std::iota(missing.begin(), missing.end(), 1);
        while (!missing.empty()) {
            // Those who have come are watched too: one that dies now would be missing in the end
            // only.
            const auto ready = wait_readable(sockets, until);
            if (ready.empty()) {
                throw_missing(missing, until);
            }
            for (const std::size_t index : ready) {
                const int rank = static_cast<int>(index);
                const Message message = receive(rank, until, all[index]);
                require_same_call(message, rank, std::erase(missing, rank) == 1);
                until = earlier(until, patience_of(message));
            }
        }
        for (int to = 1; to < info_.size; ++to) {
            for (int from = 0; from < results(); ++from) {
                send(to, MessageKind::kResult, from, all[static_cast<std::size_t>(from)].bytes,
                     all[static_cast<std::size_t>(from)].descriptors);
            }
        }
        return all;
    }

    Contributions as_other() {
        Contributions all(static_cast<std::size_t>(info_.size));
        send(0, mine_.kind, info_.rank, mine_.payload, descriptors_);
        for (int from = 0; from < results(); ++from) {
            Contribution& place = all[static_cast<std::size_t>(from)];
            const Message message = receive(0, with_grace(deadline_), place);
            if (message.kind != MessageKind::kResult || message.number != mine_.number ||
                message.rank != from) {
                throw BootstrapError(
                    fmt::format("{} answered {} (call {}) with {} {} of rank {}", rank_name(0),
                                what(), mine_.number, name_of(message.kind), message.number,
                                message.rank),
                    0, false);
            }
        }
        return all;
    }

    // Takes one packet of a connection apart. A failure that its sender tells is thrown.
    Message receive(int from, Deadline until, Contribution& into) {
        Packet packet;
        const Io io = receive_packet(socket_of(from), kMaxMessage, packet, until);
        if (io == Io::kClosed) {
            throw_lost(from);
        }
        if (io == Io::kLate) {
            throw BootstrapError(fmt::format("no word from {} within {:.3g} s in {}",
                                             rank_name(from), deadline_.seconds(), what()),
                                 from, false);
        }
        std::string why_not =
            "it is too long, or this process has too many files open to take its "
            "descriptors (ulimit -n)";
        std::optional<Message> message;
        if (!packet.cut) {
            message = decode(packet.bytes, why_not);
            if (message && message->descriptors != packet.descriptors.size()) {
                why_not = fmt::format("it announces {} descriptors and brings {}",
                                      message->descriptors, packet.descriptors.size());
                message.reset();
            }
        }
        if (!message) {
            throw BootstrapError(fmt::format("the message of {} in {} cannot be taken: {}",
                                             rank_name(from), what(), why_not),
                                 from, false);
        }
        if (message->kind == MessageKind::kFail) {
            throw BootstrapError(as_text(message->payload), message->rank, true);
        }
        into.bytes = std::move(message->payload);
        into.descriptors = std::move(packet.descriptors);
        return *message;
    }

    void send(int to, MessageKind kind, int from, const std::vector<std::byte>& bytes,
              std::span<const UniqueFd> descriptors) {
        Message message;
        message.kind = kind;
        message.rank = from;
        message.size = info_.size;
        message.number = mine_.number;
        message.run = info_.run;
        message.left_ns = static_cast<std::uint64_t>(deadline_.left().count());
        message.descriptors = descriptors.size();
        message.name = mine_.name;
        message.payload = bytes;
        const Io io =
            send_packet(socket_of(to), encode(message), descriptors, with_grace(deadline_));
        if (io == Io::kLate) {
            throw BootstrapError(fmt::format("{} did not read for {:.3g} s in {}", rank_name(to),
                                             deadline_.seconds(), what()),
                                 to, false);
        }
        if (io == Io::kClosed) {
            // Before it went it may have said why.
            Contribution ignored;
            receive(to, Deadline::after({}), ignored);
            throw_lost(to);
        }
    }

    void require_same_call(const Message& message, int rank, bool expected) const {
        if (message.kind != mine_.kind || message.number != mine_.number ||
            message.name != mine_.name || message.rank != rank || message.run != info_.run ||
            !expected) {
            throw BootstrapError(
                fmt::format(
                    "{} is in {} (its call {}) while rank 0 is in {} (its call {}). All ranks must "
                    "make the same calls in the same order.",
                    rank_name(rank), call_name(message.kind, message.name), message.number, what(),
                    mine_.number),
                rank, false);
        }
    }

    [[noreturn]] void throw_lost(int rank) const {
        throw BootstrapError(fmt::format("{} closed its connection while rank {} was in {}",
                                         rank_name(rank), info_.rank, what()),
                             rank, true);
    }

    [[noreturn]] void throw_missing(const std::vector<int>& missing, Deadline until) const {
        std::string names;
        for (const int rank : missing) {
            names += (names.empty() ? "" : ", ") + rank_name(rank);
        }
        throw BootstrapError(
            fmt::format("no word from {} within {:.3g} s in {}", names, until.seconds(), what()),
            missing.front(), false);
    }

    const Meeting& meeting_;
    const RankInfo& info_;
    Message mine_;
    std::span<const UniqueFd> descriptors_;
    Deadline deadline_;
};

Message failure(const RankInfo& info, int culprit, std::string_view text) {
    Message message;
    message.kind = MessageKind::kFail;
    message.rank = culprit >= 0 ? culprit : info.rank;
    message.size = info.size;
    message.run = info.run;
    message.payload = as_payload(text);
    return message;
}

}  // namespace

Contributions detail::Meeting::call(MessageKind kind, std::string_view name,
                                    std::span<const std::byte> bytes,
                                    std::span<const UniqueFd> descriptors, Deadline deadline) {
    if (broken) {
        throw *broken;
    }
    Message mine;
    mine.kind = kind;
    mine.rank = info.rank;
    mine.number = number++;
    mine.descriptors = descriptors.size();
    mine.name = name.substr(0, kMaxName);
    mine.payload.assign(bytes.begin(), bytes.end());
    try {
        require_encodable(mine);
        return Call(*this, std::move(mine), descriptors, deadline).run();
    } catch (const BootstrapError& error) {
        broken = error;
    } catch (const std::exception& error) {  // too many files open, too much to send, ...
        broken = BootstrapError(fmt::format("rank {} failed: {}", info.rank, error.what()),
                                info.rank, false);
    }
    tell_all();
    throw *broken;
}

void detail::Meeting::look(std::string_view doing) {
    if (broken) {
        throw *broken;
    }
    for (std::size_t i = 0; i < connections.size() && !broken; ++i) {
        if (!connections[i]) {
            continue;
        }
        const Glance glance = glance_at(connections[i].get(), kMaxMessage);
        std::string ignored;
        const auto message = decode(glance.first, ignored);
        if (message && message->kind == MessageKind::kFail) {
            broken = BootstrapError(as_text(message->payload), message->rank, true);
        } else if (glance.closed) {
            const auto now = std::chrono::steady_clock::now();
            gone_since = gone_since.value_or(now);
            if (now - *gone_since > kLeave) {
                const int rank = static_cast<int>(i);
                broken = BootstrapError(
                    fmt::format("{} closed its connection while rank {} waited for {}",
                                rank_name(rank), info.rank, doing),
                    rank, true);
            }
        }
    }
    if (broken) {
        tell_all();
        throw *broken;
    }
}

void detail::Meeting::tell_all() const noexcept {
    for (const UniqueFd& connection : connections) {
        if (connection) {
            tell(connection.get(), failure(info, broken->culprit(), broken->what()));
        }
    }
}

Bootstrap::Bootstrap(std::unique_ptr<Meeting> meeting) : meeting_(std::move(meeting)) {}
Bootstrap::Bootstrap(Bootstrap&&) noexcept = default;
Bootstrap& Bootstrap::operator=(Bootstrap&&) noexcept = default;
Bootstrap::~Bootstrap() = default;

int Bootstrap::rank() const {
    return meeting_->info.rank;
}
int Bootstrap::size() const {
    return meeting_->info.size;
}
int Bootstrap::process_of(int rank) const {
    return meeting_->processes.at(static_cast<std::size_t>(rank));
}
const std::vector<std::string>& Bootstrap::refusals() const {
    return meeting_->refusals;
}

std::vector<std::vector<std::byte>> Bootstrap::gather_bytes(std::string_view name,
                                                            std::span<const std::byte> mine,
                                                            Deadline deadline) {
    std::vector<std::vector<std::byte>> all;
    for (Contribution& one : meeting_->call(MessageKind::kAllgather, name, mine, {}, deadline)) {
        all.push_back(std::move(one.bytes));
    }
    return all;
}

std::vector<std::string> Bootstrap::allgather_text(std::string_view name, std::string_view mine,
                                                   Deadline deadline) {
    std::vector<std::string> all;
    for (const auto& bytes : gather_bytes(name, std::as_bytes(std::span(mine)), deadline)) {
        all.push_back(as_text(bytes));
    }
    return all;
}

void Bootstrap::barrier(std::string_view name, Deadline deadline) {
    meeting_->call(MessageKind::kBarrier, name, {}, {}, deadline);
}

std::vector<std::vector<UniqueFd>> Bootstrap::exchange(std::string_view name,
                                                       std::span<const UniqueFd> mine,
                                                       Deadline deadline) {
    std::vector<std::vector<UniqueFd>> all;
    for (Contribution& one : meeting_->call(MessageKind::kExchange, name, {}, mine, deadline)) {
        all.push_back(std::move(one.descriptors));
    }
    return all;
}

void Bootstrap::look(std::string_view doing) {
    meeting_->look(doing);
}

void Bootstrap::fail(std::string_view text) noexcept {
    if (meeting_ == nullptr || meeting_->broken) {
        return;  // all have been told
    }
    try {
        meeting_->broken =
            BootstrapError(fmt::format("rank {} failed: {}", meeting_->info.rank, text),
                           meeting_->info.rank, false);
        meeting_->tell_all();
    } catch (const std::exception&) {  // no memory for the text: the closed connection will tell
        meeting_->connections.clear();
    }
}

void Bootstrap::agree(std::string_view name, const std::exception_ptr& failure, Deadline deadline) {
    std::string mine;  // empty: all went well
    if (failure) {
        try {
            std::rethrow_exception(failure);
        } catch (const std::exception& error) {
            mine = std::string_view(error.what()).substr(0, kMaxContribution / 8);
        } catch (...) {
        }
        mine = mine.empty() ? "unknown error" : mine;
    }
    std::vector<std::string> all;
    try {
        all = allgather_text(name, mine, deadline);
    } catch (const BootstrapError&) {
        // Who does not answer here is often the one that the step waited for, and the step says at what.
        if (failure) {
            std::rethrow_exception(failure);
        }
        throw;
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (!all[rank].empty()) {
            throw BootstrapError(fmt::format("rank {} failed: {}", rank, all[rank]),
                                 static_cast<int>(rank), true);
        }
    }
}

void Bootstrap::require_size(int rank, std::string_view name, std::size_t bytes,
                             std::size_t expected) {
    if (bytes != expected) {
        throw BootstrapError(fmt::format("{} gave {} bytes to allgather '{}', not {}",
                                         meeting_->rank_name(rank), bytes, name, expected),
                             rank, false);
    }
}

}  // namespace symm
