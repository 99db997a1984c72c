#pragma once
/// \file
/// What ranks say to each other: the packets of the rendezvous.
///
///     byte  0       4         6      8      12     16       20        24            32    40
///           +-------+---------+------+------+------+--------+---------+-------------+-----+------+
///           | magic | version | kind | rank | size | number | payload | descriptors | run | left |
///           +-------+---------+------+------+------+--------+---------+-------------+-----+------+
///     byte  48                                         88
///           +------------------------------------------+-----------------------------------------+
///           | name (40 characters, zeros behind it)    | payload ...                             |
///           +------------------------------------------+-----------------------------------------+
///
/// A packet may come from anybody who can reach the socket. So everything in it is checked here,
/// and nothing in it is believed to be a length before it is compared with what has arrived.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace symm {

inline constexpr std::uint32_t kMessageMagic = 0x4d4d5953;  // "SYMM"
inline constexpr std::uint16_t kMessageVersion = 1;

/// Kinds of packets, as in the table of rendezvous.hpp.
enum class MessageKind : std::uint16_t {
    kHello = 1,
    kWelcome,
    kRefused,
    kBarrier,
    kAllgather,
    kExchange,
    kResult,
    kFail,
};

/// `barrier`, `allgather`, ...
std::string_view name_of(MessageKind kind);

/// One packet, taken apart. A packet's descriptors travel beside it; here is only how many there
/// should be.
struct Message {
    MessageKind kind = MessageKind::kBarrier;
    int rank = 0;               ///< Whose contribution or failure this is.
    int size = 0;               ///< Ranks of the run, as the sender knows it.
    std::uint32_t number = 0;   ///< Which call this belongs to, from 0.
    std::uint64_t run = 0;      ///< Which run.
    std::uint64_t left_ns = 0;  ///< How long the sender will still wait.
    std::size_t descriptors = 0;
    std::string name;  ///< The call's name, at most kMaxName characters.
    std::vector<std::byte> payload;
};

inline constexpr std::size_t kMaxName = 39;
/// The longest packet that is ever valid.
extern const std::size_t kMaxMessage;

/// Throws std::length_error for more payload or descriptors than one message takes.
void require_encodable(const Message& message);

/// The packet for a message. Names are cut to kMaxName. Throws as require_encodable().
std::vector<std::byte> encode(const Message& message);

/// The message in a packet; nothing, with the reason, where it is none.
std::optional<Message> decode(std::span<const std::byte> packet, std::string& why_not);

}  // namespace symm
