#include "common/bootstrap/message.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "common/bootstrap/bootstrap.hpp"

namespace symm {
namespace {

constexpr char kMagic[8] = {'s', 'y', 'm', 'm', '-', '0', '0', '3'};

// The header in a packet. Both ends are on one machine, so the byte order is the machine's own.
struct Header {
    char magic[8];
    std::int64_t deadline_ns;  // of the steady clock
    std::int64_t limit_ns;
    std::uint32_t number;
    std::uint16_t kind;
    std::uint16_t rank;
    std::uint16_t size;
    std::uint16_t zero[3];
    char name[kMaxName + 1];
};
static_assert(sizeof(Header) == kHeaderBytes && std::is_trivially_copyable_v<Header>);

}  // namespace

const std::size_t kMaxMessage = sizeof(Header) + kMaxContribution;

std::vector<std::byte> encode(const Message& message) {
    if (message.payload.size() > kMaxContribution) {
        throw std::length_error(fmt::format(
            "{} '{}' of rank {}: {} bytes exceed the limit of {} per call. Split them over several "
            "calls.",
            name_of(message.kind), message.name, message.rank, message.payload.size(),
            kMaxContribution));
    }
    Header header{};
    std::memcpy(header.magic, kMagic, sizeof(kMagic));
    header.deadline_ns =
        std::chrono::nanoseconds(message.deadline.end().time_since_epoch()).count();
    header.limit_ns = message.deadline.limit().count();
    header.number = message.number;
    header.kind = static_cast<std::uint16_t>(message.kind);
    header.rank = static_cast<std::uint16_t>(message.rank);
    header.size = static_cast<std::uint16_t>(message.size);
    std::memcpy(header.name, message.name.data(), std::min(message.name.size(), kMaxName));
    std::vector<std::byte> packet(sizeof(header) + message.payload.size());
    std::memcpy(packet.data(), &header, sizeof(header));
    std::copy(message.payload.begin(), message.payload.end(), packet.begin() + sizeof(header));
    return packet;
}

std::optional<Message> decode(std::span<const std::byte> packet, std::string& why_not) {
    Header header{};
    if (packet.size() < sizeof(header)) {
        why_not = fmt::format("a packet of {} bytes is too short", packet.size());
        return {};
    }
    std::memcpy(&header, packet.data(), sizeof(header));
    if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
        why_not = "it speaks another protocol, or another version of this one";
    } else if (header.size < 1 || header.size > kMaxRanks || header.rank >= header.size) {
        why_not = fmt::format("there is no rank {} of {}", header.rank, header.size);
    } else if (packet.size() > kMaxMessage) {
        why_not = fmt::format("it is longer than {} bytes", kMaxMessage);
    } else if (header.kind >= kNamesOf<MessageKind>.values.size() || header.deadline_ns < 0 ||
               header.limit_ns < 0 || header.name[kMaxName] != '\0') {
        why_not = "its header is invalid";
    } else {
        const Deadline::Clock::time_point end{std::chrono::nanoseconds(header.deadline_ns)};
        return Message{.kind = static_cast<MessageKind>(header.kind),
                       .rank = header.rank,
                       .size = header.size,
                       .number = header.number,
                       .deadline = Deadline::at(end, std::chrono::nanoseconds(header.limit_ns)),
                       .name = header.name,
                       .payload = {packet.begin() + sizeof(header), packet.end()}};
    }
    return {};
}

std::vector<std::byte> as_payload(std::string_view text) {
    constexpr std::size_t kMost = 4096;
    const auto bytes = std::as_bytes(std::span(text.substr(0, kMost)));
    return {bytes.begin(), bytes.end()};
}

std::string as_text(std::span<const std::byte> payload) {
    return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

}  // namespace symm
