#pragma once
/// \file
/// Calls by the copy engine in a scene: CopyOrder runs in it.

#include <array>
#include <utility>
#include <vector>

#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/copy/copy_order.hpp"
#include "labs/06_allreduce/explore/windows.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {

/// One of a rank's streams, which runs what CopyOrder queues for it, at once. A rank has such an
/// object for each stream. Streams wait for each other's events.
struct SceneStream {
    const CopyStream stream;
    std::uint32_t* const events;  ///< Of the rank: how often each has come.
    const ThreadBlock& block;
    std::array<std::uint32_t, kCopyEvents> recorded = {};  ///< On any stream, so far.

    bool is_first(CopyStream on) const { return on == stream && block.grid_rank() == 0; }
    void record(CopyStream on, int event) {
        const std::uint32_t number = ++recorded.at(static_cast<std::size_t>(event));
        if (on == stream && stream == CopyStream::kCaller) {
            explore::kernel_end();
        }
        if (is_first(on)) {
            simt::store(events + event, number, simt::Order::kRelease);
        }
    }
    void wait(CopyStream on, int event) const {
        const std::uint32_t number = recorded.at(static_cast<std::size_t>(event));
        const auto has_come = [&] {
            return simt::load(events + event, simt::Order::kAcquire) >= number;
        };
        if (is_first(on)) {
            explore::await(has_come, nullptr);
        }
        if (on == stream && block.grid_size() > 1) {
            explore::kernel_end();
        }
    }
    void copy(CopyStream on, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) const {
        if (is_first(on)) {
            std::copy_n(elements<float>(from), bytes / sizeof(float), elements<float>(to));
        }
    }
    void reduce(const ReducePieceParams& piece) const {
        if (stream == CopyStream::kCaller) {
            ReducePiece<float, kMostExplored>{piece}(block);
        }
    }
    void unpack(const Unpack& piece) const {
        if (stream == CopyStream::kCaller) {
            piece(block);
            explore::kernel_end();
        }
    }
    void end(const EndOfRound& round) const {
        if (stream == CopyStream::kCaller && block.group_index() == 0) {  // its grid has one block
            round(block);
        }
    }
};

/// The calls, with slots of `packs` packs. After the ranks, others stand for their streams that
/// push inputs, and for those that send sums.
inline void copies(Scene& scene, const Calls& calls, Pieces pieces, std::size_t packs) {
    const int ranks = calls.who.ranks;
    const std::size_t of_rank = packs * static_cast<unsigned>(ranks - 1);
    const std::uint32_t epoch = calls.other.epoch;
    const auto barrier = explore::symmetric_zeroed<BarrierMemory>(scene, ranks, "barrier");
    const auto memory = explore::symmetric_zeroed<CopyMemory>(scene, ranks, "copy");
    const auto trust = explore::symmetric_zeroed<TrustMemory>(scene, ranks, "trust");
    const PeerSlots inputs{explore::symmetric<simt::Pack16>(scene, ranks, "slot", of_rank), packs};
    const PeerSlots sums{explore::symmetric<simt::Pack16>(scene, ranks, "sums", of_rank), packs};
    const auto count = static_cast<unsigned>(pieces.count);
    name_inboxes(scene, barrier, ranks, 1, "barrier", &BarrierMemory::inbox);
    name_inboxes(scene, memory, ranks, count, "input flag", &CopyMemory::inputs, "piece");
    name_inboxes(scene, memory, ranks, count, "sum flag", &CopyMemory::sums, "piece");
    for (int rank = 0; rank < ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers_of<float>(scene, calls, rank);
        for (const auto& [slots, name] : {std::pair(inputs, "slot"), std::pair(sums, "sums")}) {
            scene.name(reinterpret_cast<float*>(slots.memory.of(rank)),
                       of_rank * sizeof(simt::Pack16) / sizeof(float), name, rank);
        }
        begin_at(epoch, *barrier.of(rank));
        memory.of(rank)->rounds = epoch;
        scene.name(&memory.of(rank)->rounds, 1, "rounds", rank);
        scene.name(barrier.of(rank)->epoch, 1, "barrier epoch", rank);
        for (int k = 0; k < CopyMemory::kMostPieces; ++k) {
            std::fill_n(memory.of(rank)->inputs[k], ranks, epoch);
            std::fill_n(memory.of(rank)->sums[k], ranks, epoch);
        }
        auto* const events = scene.zeroed<std::uint32_t>(kCopyEvents, "event", rank);
        scene.name(events + kBegun, 1, "begun", rank);
        scene.name(events + kPushed, 1, "pushed", rank);
        scene.name(events + kSent, 1, "sent", rank);
        scene.name(events + kSummed, CopyMemory::kMostPieces, "summed", rank);
        const CopyCall call{kernel_call<float>(calls, mine, rank, timeout), {barrier, rank, ranks}};
        const auto run = [=](SceneStream& stream, std::size_t elements_of_call) {
            CopyCall one = call;
            one.count = elements_of_call;
            CopyOrder(stream, one, memory, inputs, sums, {trust, rank, ranks}, pieces).run();
        };
        scene.launch(rank, {calls.who.blocks, calls.who.threads}, [=](const ThreadBlock& block) {
            SceneStream stream{CopyStream::kCaller, events, block};
            make_calls<float>(block, calls, rank, mine.in, mine.out, timeout,
                              [&](std::size_t elements_of_call) { run(stream, elements_of_call); });
        });
        const auto launch_copies = [&](int at, CopyStream stream) {
            scene.launch(at, {}, [=](const ThreadBlock& block) {
                SceneStream copies{stream, events, block};
                for (const std::size_t elements_of_call : calls.counts) {
                    run(copies, elements_of_call);
                }
            });
        };
        const bool reduces = calls.collective != Collective::kAllGather;
        if (reduces) {
            launch_copies(ranks + rank, CopyStream::kInputs);
        }
        if (calls.collective != Collective::kReduceScatter) {
            launch_copies((reduces ? 2 : 1) * ranks + rank, CopyStream::kSums);
        }
    }
}

}  // namespace symm
