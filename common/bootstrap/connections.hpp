#pragma once
/// \file
/// What the two halves of the rendezvous share: meeting (meeting.cpp) and calls (rendezvous.cpp).

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/bootstrap/bootstrap.hpp"
#include "common/bootstrap/message.hpp"
#include "common/sys/socket.hpp"

namespace symm {

namespace detail {

/// One rank's part of a call.
struct Contribution {
    std::vector<std::byte> bytes;
    std::vector<UniqueFd> descriptors;
};
using Contributions = std::vector<Contribution>;  // by rank

/// One rank's side of the rendezvous: its connections and how far it has come.
struct Meeting {
    RankInfo info;
    /// By rank. Rank 0 has one to every other; the others have one only, to rank 0, at index 0.
    std::vector<UniqueFd> connections;
    std::vector<int> processes;  ///< By rank.
    std::uint32_t number = 0;    ///< Of the next call.
    std::optional<BootstrapError> broken;
    /// When look() first saw a rank gone.
    std::optional<std::chrono::steady_clock::time_point> gone_since;
    std::vector<std::string> refusals;

    /// `rank 2 (pid 123)`
    std::string rank_name(int rank) const {
        return fmt::format("rank {} (pid {})", rank, processes[static_cast<std::size_t>(rank)]);
    }
    /// Makes one call. Whatever goes wrong in it breaks the rendezvous, and all are told.
    Contributions call(MessageKind kind, std::string_view name, std::span<const std::byte> bytes,
                       std::span<const UniqueFd> descriptors, Deadline deadline);
    /// See Bootstrap::look.
    void look(std::string_view doing);
    /// Tells all that this rank has given up; with `broken` set.
    void tell_all() const noexcept;
};

/// The receiver's view of the sender's patience.
inline Deadline patience_of(const Message& message) {
    constexpr std::uint64_t kMost = 24ull * 3600 * 1'000'000'000;  // whatever a peer claims
    return Deadline::after(std::chrono::nanoseconds(std::min(message.left_ns, kMost)));
}

inline Deadline earlier(Deadline a, Deadline b) {
    return a.left() <= b.left() ? a : b;
}

/// How long to wait for the hub, which has until `deadline` to come to its verdict.
inline Deadline with_grace(Deadline deadline) {
    return Deadline::after(deadline.left() + kVerdictGrace);
}

/// A text as payload, no longer than is allowed.
inline std::vector<std::byte> as_payload(std::string_view text) {
    constexpr std::size_t kMost = 4096;
    const auto bytes = std::as_bytes(std::span(text.data(), std::min(text.size(), kMost)));
    return {bytes.begin(), bytes.end()};
}

inline std::string as_text(std::span<const std::byte> payload) {
    return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

/// `rank 3`, `ranks 1, 3`
std::string list_ranks(const std::vector<int>& ranks);

/// Sends without waiting for long; a peer that is gone or does not read is left alone.
void tell(int socket, const Message& message) noexcept;

}  // namespace detail
}  // namespace symm
