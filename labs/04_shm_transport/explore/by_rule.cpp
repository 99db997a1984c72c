// The transfer kernel by rule: messages both ways in each launch, of each kind of size, from
// aligned and other places, through one channel and several. And messages that are unpacked.

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "labs/04_shm_transport/connection/transfer_kernel.hpp"
#include "labs/04_shm_transport/explore/unpacks.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/pairs.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {
namespace {

using explore::Scene;
using simt::ThreadBlock;

constexpr std::uint64_t kSlotBytes = 128;
/// Nothing; less than a word; a word and its rest; a whole chunk; and more, up to more than a
/// connection has slots.
constexpr std::array<std::uint64_t, 7> kSizes = {0, 3, 13, 128, 129, 300, kSteps* kSlotBytes + 40};
constexpr std::uint64_t kMost = kSizes.back();

struct Traffic {
    unsigned channels;
    unsigned threads;
    /// Rank r's first message has kSizes[sizes[r]] bytes, its second one kSizes[sizes[r] + 3].
    std::array<std::size_t, 2> sizes;
    std::uint64_t offset;  ///< From aligned data; the receiver's is one more in the second message.
    std::uint64_t first;   ///< Step.
    bool staged;           ///< The data that is sent lies in the connection's buffer.

    std::uint64_t bytes(int from, unsigned message) const {
        return kSizes.at((sizes.at(static_cast<std::size_t>(from)) + 3 * message) % kSizes.size());
    }
};

/// The connection from one rank to the other, its ends' counters, and the data.
struct OneWay {
    Connection sender, receiver;
    std::byte *in, *out;
};

OneWay one_way(Scene& scene, int from, const Traffic& traffic) {
    const int to = 1 - from;
    const auto bytes_of = [&](std::uint64_t bytes, const char* name, int rank) {
        return reinterpret_cast<std::byte*>(scene.zeroed<simt::Pack16>(bytes / 16, name, rank));
    };
    constexpr std::uint64_t kData = (kMost + 47) / 16 * 16;
    const std::uint64_t staging = traffic.staged ? kData : 0;
    const std::uint64_t slots = traffic.channels * kSteps * kSlotBytes;
    auto* const send = scene.zeroed<SendMem>(traffic.channels, "head", from);
    auto* const receive = scene.zeroed<RecvMem>(traffic.channels, "tail", to);
    auto* const buffer = bytes_of(slots + staging, "buffer", to);
    const auto connect = [&](int rank) {
        auto* const steps = scene.zeroed<std::uint64_t>(traffic.channels, "step", rank);
        std::fill_n(steps, traffic.channels, traffic.first);
        return Connection{send, receive, steps, buffer, kSlotBytes, staging, traffic.channels};
    };
    for (unsigned c = 0; c < traffic.channels; ++c) {
        send[c].head = receive[c].tail = traffic.first;
    }
    return {connect(from), connect(to),
            traffic.staged ? buffer + slots : bytes_of(kData, "in", from),
            bytes_of(kData, "out", to)};
}

void transfers(Scene& scene, const Traffic& traffic) {
    constexpr unsigned kMessages = 2;
    const std::array<OneWay, 2> from = {one_way(scene, 0, traffic), one_way(scene, 1, traffic)};
    const auto value = [](int sender, unsigned message, std::uint64_t i) {
        return static_cast<std::byte>(1 + 7 * i + 100 * message +
                                      50 * static_cast<unsigned>(sender));
    };
    for (int rank = 0; rank < 2; ++rank) {
        const int peer = 1 - rank;
        const OneWay& mine = from.at(static_cast<std::size_t>(rank));
        const OneWay& other = from.at(static_cast<std::size_t>(peer));
        const auto kernel_of = [=, timeout = explore::timeout_of(scene, rank)](unsigned m) {
            return TransferKernel{
                {mine.sender, mine.in + traffic.offset, traffic.bytes(rank, m), peer},
                {other.receiver, other.out + traffic.offset + m, traffic.bytes(peer, m), peer},
                rank,
                timeout};
        };
        const unsigned blocks = std::max({kernel_of(0).blocks(), kernel_of(1).blocks(), 1U});
        scene.launch(
            rank, {blocks, traffic.threads, sizeof(EndState)}, [=](const ThreadBlock& block) {
                for (unsigned m = 0; m < kMessages; ++m) {
                    const TransferKernel kernel = kernel_of(m);
                    const bool checks = block.grid_rank() == 0 && !explore::gave_up(kernel.timeout);
                    for (std::uint64_t i = 0; checks && i < traffic.bytes(rank, m); ++i) {
                        mine.in[traffic.offset + i] = value(rank, m, i);
                    }
                    explore::kernel_end();
                    if (block.group_index() < kernel.blocks()) {
                        kernel(block);
                    }
                    explore::kernel_end();
                    if (!checks || explore::gave_up(kernel.timeout)) {
                        continue;
                    }
                    const std::byte* const out = kernel.inbound.data;
                    const std::uint64_t bytes = traffic.bytes(peer, m);
                    for (std::uint64_t i = 0; i < bytes; ++i) {
                        if (out[i] != value(peer, m, i)) {
                            explore::fail(fmt::format("message {}, byte {}: {} instead of {}", m, i,
                                                      static_cast<int>(out[i]),
                                                      static_cast<int>(value(peer, m, i))));
                        }
                    }
                    if (m == 0 && out[bytes] != std::byte{0}) {
                        explore::fail("a byte behind the message has changed");
                    }
                }
            });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    constexpr std::array<std::uint64_t, 4> kOffsets = {0, 1, 4, 15};
    constexpr std::array<std::uint64_t, 3> kFirst = {0, 6, ~std::uint64_t{1}};
    const std::vector<std::size_t> values = {
        3, 3, kSizes.size(), kSizes.size(), kOffsets.size(), kFirst.size(), 2};
    std::vector<explore::Setting> settings;
    for (unsigned seed = 0; seed < 3; ++seed) {
        std::ranges::copy(explore::every_pair(values, seed), std::back_inserter(settings));
    }
    std::vector<explore::Protocol> scenes;
    for (const explore::Setting& s : settings) {
        const Traffic traffic = {static_cast<unsigned>(s[0] + 1),
                                 static_cast<unsigned>(s[1] + 1),
                                 {s[2], s[3]},
                                 kOffsets.at(s[4]),
                                 kFirst.at(s[5]),
                                 s[6] != 0};
        scenes.push_back(
            {fmt::format("by_rule/transfer/{}x{}/{}+{}/from{}/after{}{}", traffic.channels,
                         traffic.threads, traffic.bytes(0, 0), traffic.bytes(1, 0), traffic.offset,
                         static_cast<std::int64_t>(traffic.first), traffic.staged ? "/staged" : ""),
             [=](Scene& scene) { transfers(scene, traffic); },
             traffic.channels * traffic.threads == 1, 10});
    }
    constexpr std::array<std::uint64_t, 3> kFirstPiece = {0, kUnpackDepth - 2,
                                                          3 * kUnpackDepth - 1};
    for (const explore::Setting& s :
         explore::every_pair({kUnpackBlocks, 3, 5, 3, kFirstPiece.size(), 2}, 0)) {
        const Unpacks unpacks = {static_cast<unsigned>(s[0] + 1),
                                 static_cast<unsigned>(s[1] + 1),
                                 s[2] + 1,
                                 s[3] + 1,
                                 kFirstPiece.at(s[4]),
                                 s[5] == 0};
        scenes.push_back(
            {fmt::format("by_rule/unpack/{}x{}/{}x{}/after{}{}", unpacks.blocks, unpacks.threads,
                         unpacks.messages, unpacks.pieces, static_cast<std::int64_t>(unpacks.first),
                         unpacks.equal_pieces ? "" : "/uneven"),
             [=](Scene& scene) { unpack(scene, unpacks); }, unpacks.blocks * unpacks.threads == 1,
             10});
    }
    return explore::explore_main(argc, argv, scenes);
}
