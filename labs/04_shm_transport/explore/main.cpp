// The connection and the unpack queue, message after message, in every execution.

#include <fmt/core.h>

#include "common/explore/explore_main.hpp"
#include "common/explore/timeouts.hpp"
#include "labs/04_shm_transport/connection/transfer_kernel.hpp"
#include "labs/04_shm_transport/unpack_queue/unpack_queue.hpp"

namespace symm {
namespace {

using explore::fail;
using explore::Scene;
using simt::ThreadBlock;

constexpr std::uint64_t kSlotBytes = 128;
constexpr std::uint64_t kLastBytes = 16;  ///< The size of a message's last chunk.

/// Rank 0 sends messages of `chunks` chunks to rank 1, from step `first` on. Staged: they lie in
/// the connection's buffer, one after the other in three places.
void messages(Scene& scene, unsigned threads, unsigned chunks, unsigned count, std::uint64_t first,
              bool staged) {
    const std::uint64_t bytes = (chunks - 1) * kSlotBytes + kLastBytes;
    auto* const send = scene.allocate<SendMem>(1, "head", 0);
    auto* const receive = scene.allocate<RecvMem>(1, "tail", 1);
    scene.name(receive->fifo, kSteps, "fifo", 1);
    const std::uint64_t staging = staged ? 3 * chunks * kSlotBytes : 0;
    send->head = receive->tail = first;
    auto* const buffer = scene.allocate<std::byte>(kSteps * kSlotBytes + staging, "buffer", 1);
    for (int rank = 0; rank < 2; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        auto* const step = scene.allocate<std::uint64_t>(1, "step", rank);
        *step = first;
        const bool in_buffer = staged && rank == 0;
        std::byte* const data = in_buffer
                                    ? buffer + kSteps * kSlotBytes
                                    : scene.allocate<std::byte>(chunks * kSlotBytes, "data", rank);
        const Connection connection{send, receive, step, buffer, kSlotBytes, staging, 1};
        const Connection none{nullptr, nullptr, nullptr, nullptr, kSlotBytes, 0, 1};
        scene.launch(rank, {1, threads, sizeof(EndState)}, [=](const ThreadBlock& block) {
            const bool first = block.thread_rank() == 0;
            for (unsigned m = 0; m < count; ++m) {
                std::byte* const place = data + (in_buffer ? m % 3 * chunks * kSlotBytes : 0);
                auto* const words = reinterpret_cast<std::uint64_t*>(place);
                const TransferKernel kernel{
                    {rank == 0 ? connection : none, place, rank == 0 ? bytes : 0, 1},
                    {rank == 1 ? connection : none, place, rank == 1 ? bytes : 0, 0},
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
                for (std::uint64_t i = 0; i < bytes / 8; ++i) {
                    if (first && rank == 1 && !explore::gave_up(timeout) && words[i] != word(i)) {
                        fail(fmt::format("message {}, word {}: {} instead of {}", m, i, words[i],
                                         word(i)));
                    }
                }
            }
        });
    }
}

/// Rank 0 plays the host thread, and does what its table says: it receives `pieces` pieces
/// into two parts of a bounce buffer in turn, and describes them. The kernel has `blocks` blocks.
void unpack(Scene& scene, unsigned blocks, unsigned threads, std::uint64_t pieces) {
    constexpr std::uint64_t kWords = 8;  // in a piece: with 16 bytes for each thread
    constexpr std::uint64_t kParts = 2;
    constexpr std::uint64_t kBytes = kWords * sizeof(std::uint64_t);
    auto* const queue = scene.allocate<UnpackQueue>(1, "queue", 0);
    scene.name(queue->heads, kUnpackBlocks, "heads", 0);
    scene.name(queue->descriptors, kUnpackDepth, "descriptors", 0);
    auto* const bounce = scene.allocate<std::uint64_t>(kParts * kWords, "bounce", 0);
    auto* const user = scene.allocate<std::uint64_t>(pieces * kWords, "user", 1);
    const simt::Timeout host = explore::timeout_of(scene, 0);
    const simt::Timeout device = explore::timeout_of(scene, 1);
    const auto word = [](std::uint64_t piece, std::uint64_t i) { return 100 * (piece + 1) + i; };
    scene.launch(0, {}, [=](const ThreadBlock&) {
        simt::Waiter waiter(host);
        for (std::uint64_t piece = 0; piece < pieces; ++piece) {
            for (unsigned b = 0; piece >= kParts && b < blocks; ++b) {
                const std::uint64_t read = piece - kParts;
                if (!waiter.until({simt::Wait::kFifoSpace, 0, 1, read}, [&](std::uint64_t& seen) {
                        seen = simt::load(&queue->heads[b], simt::Order::kAcquire);
                        return seen > read;
                    })) {
                    return;
                }
            }
            for (std::uint64_t i = 0; i < kWords; ++i) {
                bounce[piece % kParts * kWords + i] = word(piece, i);
            }
            // The last piece of the message arrives first.
            queue->descriptors[piece % kUnpackDepth] = {piece % kParts * kBytes, kBytes,
                                                        (pieces - 1 - piece) * kBytes};
            simt::store(&queue->tail, piece + 1, simt::Order::kRelease);
        }
    });
    const UnpackKernel kernel{queue,
                              reinterpret_cast<std::byte*>(bounce),
                              kParts * kBytes,
                              reinterpret_cast<std::byte*>(user),
                              pieces * kBytes,
                              pieces * kBytes,
                              device,
                              1,
                              0};
    scene.launch(1, {blocks, threads, sizeof(std::uint64_t)}, [=](const ThreadBlock& block) {
        kernel(block);
        explore::kernel_end();
        if (block.grid_rank() != 0 || explore::gave_up(device)) {
            return;
        }
        for (std::uint64_t piece = 0; piece < pieces; ++piece) {
            for (std::uint64_t i = 0; i < kWords; ++i) {
                const std::uint64_t seen = user[(pieces - 1 - piece) * kWords + i];
                if (seen != word(piece, i)) {
                    fail(fmt::format("piece {}, word {}: {} instead of {}", piece, i, seen,
                                     word(piece, i)));
                }
            }
        }
    });
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    const auto connection = [](unsigned threads, unsigned chunks, unsigned count,
                               std::uint64_t first = 0, bool staged = false) {
        return [=](Scene& scene) { messages(scene, threads, chunks, count, first, staged); };
    };
    const auto unpacking = [](unsigned blocks, unsigned threads, std::uint64_t pieces) {
        return [=](Scene& scene) { unpack(scene, blocks, threads, pieces); };
    };
    return explore::explore_main(argc, argv,
                                 {
                                     {"connection/1", connection(1, 10, 1)},
                                     {"connection/2", connection(2, 9, 1, 7)},
                                     {"staged/1", connection(1, 5, 2, 0, true)},
                                     {"staged/2", connection(2, 2, 5, 0, true)},
                                     {"messages/2", connection(2, 5, 2)},
                                     {"unpack/1x1", unpacking(1, 1, 4)},
                                     {"unpack/1x2", unpacking(1, 2, 3)},
                                     {"unpack/2x1", unpacking(2, 1, 3)},
                                 });
}
