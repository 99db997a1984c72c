#include "common/bootstrap/message.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "common/bootstrap/bootstrap.hpp"

namespace symm {
namespace {

// The packet's head as it travels: both ends are on one machine, so its own byte order will do.
struct Header {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t kind;
    std::uint32_t rank;
    std::uint32_t size;
    std::uint32_t number;
    std::uint32_t payload;
    std::uint32_t descriptors;
    std::uint32_t reserved;
    std::uint64_t run;
    std::uint64_t left_ns;
    char name[kMaxName + 1];
};
static_assert(sizeof(Header) == 88 && std::is_trivially_copyable_v<Header>);

}  // namespace

const std::size_t kMaxMessage = sizeof(Header) + kMaxContribution;

std::string_view name_of(MessageKind kind) {
    switch (kind) {
        case MessageKind::kHello:
            return "hello";
        case MessageKind::kWelcome:
            return "welcome";
        case MessageKind::kRefused:
            return "refused";
        case MessageKind::kBarrier:
            return "barrier";
        case MessageKind::kAllgather:
            return "allgather";
        case MessageKind::kExchange:
            return "exchange";
        case MessageKind::kResult:
            return "result";
        case MessageKind::kFail:
            return "failure";
    }
    return "unknown";
}

void require_encodable(const Message& message) {
    if (message.payload.size() > kMaxContribution || message.descriptors > kMaxDescriptors) {
        throw std::length_error(
            fmt::format("{} '{}' of rank {}: {} bytes and {} descriptors are more than the {} and "
                        "{} that one call "
                        "takes. Split it over several calls.",
                        name_of(message.kind), message.name, message.rank, message.payload.size(),
                        message.descriptors, kMaxContribution, kMaxDescriptors));
    }
}

std::vector<std::byte> encode(const Message& message) {
    require_encodable(message);
    Header header{};
    header.magic = kMessageMagic;
    header.version = kMessageVersion;
    header.kind = static_cast<std::uint16_t>(message.kind);
    header.rank = static_cast<std::uint32_t>(message.rank);
    header.size = static_cast<std::uint32_t>(message.size);
    header.number = message.number;
    header.payload = static_cast<std::uint32_t>(message.payload.size());
    header.descriptors = static_cast<std::uint32_t>(message.descriptors);
    header.run = message.run;
    header.left_ns = message.left_ns;
    std::memcpy(header.name, message.name.data(), std::min(message.name.size(), kMaxName));
    std::vector<std::byte> packet(sizeof(header) + message.payload.size());
    std::memcpy(packet.data(), &header, sizeof(header));
    if (!message.payload.empty()) {
        std::memcpy(packet.data() + sizeof(header), message.payload.data(), message.payload.size());
    }
    return packet;
}

std::optional<Message> decode(std::span<const std::byte> packet, std::string& why_not) {
    Header header{};
    if (packet.size() < sizeof(header)) {
        why_not = fmt::format("a packet of {} bytes is too short", packet.size());
        return {};
    }
    std::memcpy(&header, packet.data(), sizeof(header));
    if (header.magic != kMessageMagic) {
        why_not = "it does not speak this protocol";
    } else if (header.version != kMessageVersion) {
        why_not = fmt::format("it speaks version {}, not {}", header.version, kMessageVersion);
    } else if (header.kind < static_cast<std::uint16_t>(MessageKind::kHello) ||
               header.kind > static_cast<std::uint16_t>(MessageKind::kFail)) {
        why_not = fmt::format("there is no message of kind {}", header.kind);
    } else if (header.size < 1 || header.size > static_cast<std::uint32_t>(kMaxRanks) ||
               header.rank >= header.size) {
        why_not = fmt::format("there is no rank {} of {}", header.rank, header.size);
    } else if (header.payload != packet.size() - sizeof(header) ||
               header.payload > kMaxContribution) {
        why_not = fmt::format("it announces {} bytes and brings {}", header.payload,
                              packet.size() - sizeof(header));
    } else if (header.descriptors > kMaxDescriptors) {
        why_not = fmt::format("it announces {} descriptors", header.descriptors);
    } else if (std::find(std::begin(header.name), std::end(header.name), '\0') ==
               std::end(header.name)) {
        why_not = "its name has no end";
    } else {
        Message message;
        message.kind = static_cast<MessageKind>(header.kind);
        message.rank = static_cast<int>(header.rank);
        message.size = static_cast<int>(header.size);
        message.number = header.number;
        message.run = header.run;
        message.left_ns = header.left_ns;
        message.descriptors = header.descriptors;
        message.name = header.name;
        message.payload.assign(packet.begin() + sizeof(header), packet.end());
        return message;
    }
    return {};
}

}  // namespace symm
