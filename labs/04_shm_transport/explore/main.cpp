// The connection and the unpack queue, message after message, in every execution.

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "labs/04_shm_transport/connection/transfer_kernel.hpp"
#include "labs/04_shm_transport/explore/unpacks.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {
namespace {

using explore::fail;
using explore::Scene;
using simt::ThreadBlock;

constexpr std::uint64_t kSlotBytes = 128;
constexpr std::array kMembers{"mode", "offset", "size", "left"};  ///< Of a FifoEntry.
constexpr std::uint64_t kLastBytes = 24;  ///< The size of a message's last chunk: not whole packs.

struct Traffic {
    unsigned threads;
    unsigned chunks;  ///< Of the first, the third ... message; the others have one less.
    unsigned messages;
    std::uint64_t first = 0;  ///< Step.
    unsigned places = 0;      ///< Staged: they lie in as many places of the connection's buffer.
    unsigned channels = 1;
    std::uint64_t more = 0;  ///< Bytes that the receiver expects beyond those sent.
};

/// Memory that reports show as words of eight bytes.
std::byte* bytes_of(Scene& scene, std::uint64_t bytes, const char* name, int rank) {
    return reinterpret_cast<std::byte*>(scene.zeroed<std::uint64_t>(bytes / 8, name, rank));
}

/// Rank 0 sends messages to rank 1.
void messages(Scene& scene, const Traffic& traffic) {
    const unsigned chunks = traffic.chunks;
    const unsigned channels = traffic.channels;
    const std::uint64_t more = traffic.more;
    auto* const send = scene.zeroed<SendMem>(channels, "head", 0);
    auto* const receive = scene.zeroed<RecvMem>(channels, "tail", 1);
    std::uint64_t* const steps[] = {scene.zeroed<std::uint64_t>(channels, "step", 0),
                                    scene.zeroed<std::uint64_t>(channels, "step", 1)};
    for (unsigned c = 0; c < channels; ++c) {
        for (unsigned i = 0; i < kSteps; ++i) {
            const auto* const words = reinterpret_cast<const std::uint64_t*>(&receive[c].fifo[i]);
            for (unsigned m = 0; m < 4; ++m) {
                scene.name(words + m, 1, fmt::format("fifo[{}].{}", i, kMembers[m]), 1);
            }
        }
        send[c].head = receive[c].tail = steps[0][c] = steps[1][c] = traffic.first;
    }
    const std::uint64_t staging = traffic.places * chunks * kSlotBytes;
    const std::uint64_t slots = channels * kSteps * kSlotBytes;
    auto* const buffer = bytes_of(scene, slots + staging, "buffer", 1);
    for (int rank = 0; rank < 2; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const bool in_buffer = traffic.places > 0 && rank == 0;
        std::byte* const data =
            in_buffer ? buffer + slots : bytes_of(scene, chunks * kSlotBytes, "data", rank);
        const Connection connection{send,       receive, steps[rank], buffer,
                                    kSlotBytes, staging, channels};
        const Connection none{nullptr, nullptr, nullptr, nullptr, kSlotBytes, 0, channels};
        scene.launch(
            rank, {channels, traffic.threads, sizeof(EndState)}, [=](const ThreadBlock& block) {
                const bool first = block.grid_rank() == 0;
                for (unsigned m = 0; m < traffic.messages; ++m) {
                    const std::uint64_t bytes = (chunks - m % 2 - 1) * kSlotBytes + kLastBytes;
                    std::byte* const place =
                        data + (in_buffer ? m % traffic.places * chunks * kSlotBytes : 0);
                    auto* const words = reinterpret_cast<std::uint64_t*>(place);
                    const TransferKernel kernel{
                        {rank == 0 ? connection : none, place, rank == 0 ? bytes : 0, 1},
                        {rank == 1 ? connection : none, place, rank == 1 ? bytes + more : 0, 0},
                        rank,
                        timeout};
                    const auto word = [&](std::uint64_t i) { return 1000 * (m + 1) + i; };
                    for (std::uint64_t i = 0; i < bytes / 8; ++i) {
                        if (first && rank == 0 && !explore::gave_up(timeout)) {
                            words[i] = word(i);
                        }
                    }
                    explore::kernel_end();
                    kernel(block);
                    explore::kernel_end();
                    const bool checks = first && rank == 1 && !explore::gave_up(timeout);
                    if (first && rank == 1 && more != 0 &&
                        (checks || send->head != traffic.first)) {
                        fail("a message of another length is received");
                    }
                    for (std::uint64_t i = 0; checks && i < bytes / 8; ++i) {
                        if (const std::uint64_t seen = words[i]; seen != word(i)) {
                            fail(fmt::format("message {}, word {}: {} instead of {}", m, i, seen,
                                             word(i)));
                        }
                    }
                }
            });
    }
}

/// A kernel of one piece finds `described` descriptors in its queue, which may be full.
void queue_of(Scene& scene, std::uint64_t described) {
    auto* const queue = scene.zeroed<UnpackQueue>(1, "queue", 0);
    auto* const memory = scene.zeroed<std::byte>(128, "memory", 1);  // both buffers
    std::fill_n(queue->descriptors, kUnpackDepth, UnpackDescriptor{0, 16, 64});
    queue->tail = described;
    const UnpackKernel kernel{queue, memory, 64, memory, 128, 16, explore::timeout_of(scene, 1),
                              1,     0};
    scene.launch(1, {1, 1, sizeof(std::uint64_t)}, [=](const ThreadBlock& block) {
        kernel(block);
        const std::uint64_t taken = described > kUnpackDepth ? 0 : 1;
        if (!explore::gave_up(kernel.timeout) && queue->heads[0] != taken) {
            fail(fmt::format("{} descriptors were taken instead of {}", queue->heads[0], taken));
        }
        if (explore::gave_up(kernel.timeout) != (taken == 0)) {
            fail(taken == 0 ? "too many descriptors are taken" : "a full queue is refused");
        }
    });
}

/// A kernel of a message whose pieces have few bytes, and begin at any of them.
void few_bytes(Scene& scene, unsigned threads) {
    constexpr std::array<UnpackDescriptor, 6> kPieces{
        {{8, 3, 24}, {17, 16, 33}, {36, 23, 68}, {65, 3, 97}, {72, 24, 104}, {100, 20, 1}}};
    constexpr std::size_t kBytes = 128;
    auto* const queue = scene.zeroed<UnpackQueue>(1, "queue", 0);
    auto* const bounce = scene.allocate<std::byte>(kBytes, "bounce", 0);
    auto* const user = scene.zeroed<std::byte>(kBytes, "user", 1);
    std::array<std::byte, kBytes> expected{};
    for (std::size_t i = 0; i < kBytes; ++i) {
        bounce[i] = std::byte{static_cast<unsigned char>(i + 1)};
    }
    std::uint64_t bytes = 0;
    for (std::size_t k = 0; k < kPieces.size(); ++k) {
        const auto& [from, size, to] = queue->descriptors[k] = kPieces.at(k);
        std::copy_n(bounce + from, size, expected.begin() + static_cast<std::ptrdiff_t>(to));
        bytes += size;
    }
    queue->tail = kPieces.size();
    const UnpackKernel kernel{
        queue, bounce, kBytes, user, kBytes, bytes, explore::timeout_of(scene, 1), 1, 0};
    scene.launch(1, {1, threads, sizeof(std::uint64_t)}, [=](const ThreadBlock& block) {
        kernel(block);
        explore::kernel_end();
        for (std::size_t i = 0; block.thread_rank() == 0 && i < kBytes; ++i) {
            if (user[i] != expected[i]) {
                fail(fmt::format("byte {} is wrong", i));
            }
        }
    });
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    const auto connection = [](const Traffic& traffic) {
        return [=](Scene& scene) { messages(scene, traffic); };
    };
    const auto unpacking = [](const Unpacks& unpacks) {
        return [=](Scene& scene) { unpack(scene, unpacks); };
    };
    const auto queue = [](std::uint64_t described) {
        return [=](Scene& scene) { queue_of(scene, described); };
    };
    constexpr std::uint64_t kAlmostWrapped = ~std::uint64_t{2};
    return explore::explore_main(
        argc, argv,
        {
            {"connection/1", connection({1, 10, 1})},    // more chunks than slots
            {"connection/2", connection({2, 9, 1, 7})},  // the slots begin again in between
            {"connection/1/wrap", connection({1, 9, 1, kAlmostWrapped})},  // the steps' numbers
            {"connection/1x2", connection({1, 4, 2, 7, 0, 2})},            // two channels
            {"staged/1", connection({1, 3, 3, 0, 1})},
            {"staged/2", connection({2, 2, 5, 0, 3})},  // a place is used again
            {"messages/2", connection({2, 5, 2})},      // the slots are used by two kernels
            {"messages/1/longer", connection({1, 2, 2, 0, 0, 1, 8})},  // than what was sent
            {"unpack/1x1", unpacking({1, 1, 4})},
            {"unpack/1x2", unpacking({1, 2, 3})},
            {"unpack/2x1", unpacking({2, 1, 3})},
            // Two kernels, and the queue's end between their descriptors.
            {"unpack/1x2/next", unpacking({1, 2, 3, 2, kUnpackDepth - 2})},
            {"unpack/1x1/bytes", [](Scene& scene) { few_bytes(scene, 1); }, false},
            {"unpack/1x2/bytes", [](Scene& scene) { few_bytes(scene, 2); }, false},
            {"unpack/full", queue(kUnpackDepth), false},
            {"unpack/overfull", queue(kUnpackDepth + 1), false},
        });
}
