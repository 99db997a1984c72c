#pragma once
/// \file
/// The packets of SocketBootstrap: a header (message.cpp), then the payload. A packet may come from
/// any process that can reach the socket, so decode() checks its header.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/sys/deadline.hpp"
#include "common/sys/named.hpp"

namespace symm {

/// Kinds of packets. The table of socket_bootstrap.hpp shows which ranks send which.
enum class MessageKind : std::uint16_t {
    kHello,
    kWelcome,
    kRefused,
    kBarrier,
    kAllgather,
    kExchange,
    kResult,
    kFail,
};

constexpr auto names_of(MessageKind) {
    return names("MessageKind", "hello", "welcome", "refused", "barrier", "allgather", "exchange",
                 "result", "failure");
}

/// The content of one packet. Descriptors travel beside it.
struct Message {
    MessageKind kind = MessageKind::kBarrier;
    int rank = 0;              ///< The rank whose contribution or failure this is.
    int size = 1;              ///< Ranks of the run, as the sender knows it.
    std::uint32_t number = 0;  ///< The number of the call that this belongs to, from 0.
    /// When the sender stops waiting. It is a point in time, not a duration: a receiver that reads
    /// the packet late must not wait longer.
    Deadline deadline = Deadline::after({});
    std::string name;  ///< The call's name, at most kMaxName characters.
    std::vector<std::byte> payload;
};

inline constexpr std::size_t kMaxName = 39;
/// Bytes before the payload.
inline constexpr std::size_t kHeaderBytes = 80;
/// The longest packet that is ever valid.
extern const std::size_t kMaxMessage;

/// The packet for a message. Names are cut to kMaxName. Throws std::length_error for a payload over
/// kMaxContribution.
std::vector<std::byte> encode(const Message& message);

/// The message in a packet. If the packet is not valid: nothing, and the reason in `why_not`.
[[nodiscard]] std::optional<Message> decode(std::span<const std::byte> packet,
                                            std::string& why_not);

/// A text as payload, cut to 4,096 characters; a payload as text.
std::vector<std::byte> as_payload(std::string_view text);
std::string as_text(std::span<const std::byte> payload);

}  // namespace symm
