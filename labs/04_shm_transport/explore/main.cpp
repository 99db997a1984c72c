// The connection, message after message, in every execution.

#include <fmt/core.h>

#include "common/explore/explore_main.hpp"
#include "common/explore/timeouts.hpp"
#include "labs/04_shm_transport/connection/transfer_kernel.hpp"

namespace symm {
namespace {

using explore::fail;
using explore::Scene;
using simt::ThreadBlock;

constexpr std::uint64_t kSlotBytes = 128;
constexpr std::uint64_t kLastBytes = 16;  ///< Of a message's last chunk.

/// Rank 0 sends messages of `chunks` chunks to rank 1. Staged: they lie in the connection's buffer.
void messages(Scene& scene, unsigned threads, unsigned chunks, unsigned count, bool staged) {
    const std::uint64_t bytes = (chunks - 1) * kSlotBytes + kLastBytes;
    auto* const send = scene.allocate<SendMem>(1, "head", 0);
    auto* const receive = scene.allocate<RecvMem>(1, "tail", 1);
    const std::uint64_t staging = staged ? chunks * kSlotBytes : 0;
    auto* const buffer = scene.allocate<std::byte>(kSteps * kSlotBytes + staging, "buffer", 1);
    for (int rank = 0; rank < 2; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        auto* const step = scene.allocate<std::uint64_t>(1, "step", rank);
        std::byte* const data = staged && rank == 0
                                    ? buffer + kSteps * kSlotBytes
                                    : scene.allocate<std::byte>(chunks * kSlotBytes, "data", rank);
        const Connection connection{send, receive, step, buffer, kSlotBytes, staging, 1};
        const Connection none{nullptr, nullptr, nullptr, nullptr, kSlotBytes, 0, 1};
        const TransferKernel kernel{{rank == 0 ? connection : none, data, rank == 0 ? bytes : 0, 1},
                                    {rank == 1 ? connection : none, data, rank == 1 ? bytes : 0, 0},
                                    rank,
                                    timeout};
        scene.launch(rank, {1, threads, sizeof(EndState)}, [=](const ThreadBlock& block) {
            auto* const words = reinterpret_cast<std::uint64_t*>(data);
            const bool first = block.thread_rank() == 0;
            for (unsigned m = 0; m < count; ++m) {
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

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    const auto connection = [](unsigned threads, unsigned chunks, unsigned count,
                               bool staged = false) {
        return [=](Scene& scene) { messages(scene, threads, chunks, count, staged); };
    };
    return explore::explore_main(argc, argv,
                                 {
                                     {"connection/1", connection(1, 10, 1)},
                                     {"connection/2", connection(2, 10, 1)},
                                     {"connection/2/2", connection(2, 5, 2)},
                                     {"connection/1/staged", connection(1, 5, 2, true)},
                                 });
}
