#pragma once
/// \file
/// Messages that arrive in a bounce buffer, and the kernels that unpack them.

#include <fmt/core.h>

#include <algorithm>

#include "labs/04_shm_transport/unpack_queue/unpack_queue.hpp"
#include "tools/explore/explore.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {

struct Unpacks {
    unsigned blocks, threads;
    std::uint64_t pieces;  ///< Of a message.
    std::uint64_t messages = 1;
    std::uint64_t first = 0;   ///< Descriptor.
    bool equal_pieces = true;  ///< Of eight words; otherwise of one to eight.

    std::uint64_t words(std::uint64_t piece) const { return equal_pieces ? 8 : 1 + piece * 5 % 8; }
    /// Where a piece of a message begins, in words: the last one first.
    std::uint64_t begin(std::uint64_t piece) const {
        std::uint64_t words_before = 0;
        for (std::uint64_t other = piece + 1; other < pieces; ++other) {
            words_before += words(other);
        }
        return words_before;
    }
    std::uint64_t bytes() const { return (begin(0) + words(0)) * sizeof(std::uint64_t); }
};

/// Rank 0 plays the host thread, and does what its table says: it receives messages of some pieces
/// into two parts of a bounce buffer in turn, and describes them.
inline void unpack(explore::Scene& scene, const Unpacks& all) {
    constexpr std::uint64_t kWords = 8;  // of a part: with 16 bytes for each thread
    constexpr std::uint64_t kParts = 2;
    constexpr std::uint64_t kBytes = kWords * sizeof(std::uint64_t);
    auto* const queue = scene.zeroed<UnpackQueue>(1, "queue", 0);
    scene.name(queue->heads, kUnpackBlocks, "heads", 0);
    scene.name(queue->descriptors, kUnpackDepth, "descriptors", 0);
    auto* const bounce = scene.allocate<std::uint64_t>(kParts * kWords, "bounce", 0);
    auto* const user = scene.allocate<std::uint64_t>(all.bytes() / 8, "user", 1);
    const simt::Timeout host = explore::timeout_of(scene, 0);
    const simt::Timeout device = explore::timeout_of(scene, 1);
    const auto word = [](std::uint64_t piece, std::uint64_t i) { return 100 * (piece + 1) + i; };
    std::fill_n(queue->heads, kUnpackBlocks, queue->tail = all.first);
    scene.launch(0, {}, [=](const simt::ThreadBlock&) {
        simt::Waiter waiter(host);
        for (std::uint64_t piece = 0; piece < all.messages * all.pieces; ++piece) {
            for (unsigned b = 0; piece >= kParts && b < all.blocks; ++b) {
                const std::uint64_t read = all.first + piece - kParts;
                if (!waiter.until({simt::Wait::kFifoSpace, 0, 1, read}, [&](std::uint64_t& seen) {
                        seen = simt::load(&queue->heads[b], simt::Order::kAcquire);
                        return seen > read;
                    })) {
                    return;
                }
            }
            const std::uint64_t of_message = piece % all.pieces;
            for (std::uint64_t i = 0; i < all.words(of_message); ++i) {
                bounce[piece % kParts * kWords + i] = word(piece, i);
            }
            queue->descriptors[(all.first + piece) % kUnpackDepth] = {
                piece % kParts * kBytes, all.words(of_message) * 8, all.begin(of_message) * 8};
            simt::store(&queue->tail, all.first + piece + 1, simt::Order::kRelease);
        }
    });
    const UnpackKernel kernel{queue,
                              reinterpret_cast<std::byte*>(bounce),
                              kParts * kBytes,
                              reinterpret_cast<std::byte*>(user),
                              all.bytes(),
                              all.bytes(),
                              device,
                              1,
                              0};
    scene.launch(
        1, {all.blocks, all.threads, sizeof(std::uint64_t)}, [=](const simt::ThreadBlock& block) {
            for (std::uint64_t m = 0; m < all.messages; ++m) {
                kernel(block);
                explore::kernel_end();
                const bool checks = block.grid_rank() == 0 && !explore::gave_up(device);
                for (std::uint64_t p = 0; checks && p < all.pieces; ++p) {
                    const std::uint64_t piece = m * all.pieces + p;
                    for (std::uint64_t i = 0; i < all.words(p); ++i) {
                        if (const std::uint64_t seen = user[all.begin(p) + i];
                            seen != word(piece, i)) {
                            explore::fail(fmt::format("piece {}, word {}: {} instead of {}", piece,
                                                      i, seen, word(piece, i)));
                        }
                    }
                }
                explore::kernel_end();
            }
        });
}

}  // namespace symm
