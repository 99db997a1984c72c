#pragma once
/// \file
/// The AllReduce kernels of two ranks, or of three where packs are pushed twice, for float and as
/// few packets as a test needs: correct, or as a mutant (cmake/Mutants.cmake). Not in the library,
/// which is compiled only once, for all types.

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/cuda/copy.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/ranks/ranks.hpp"
#include "common/simt/waiter.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/06_allreduce/algorithms/copy/copy.hpp"
#include "labs/06_allreduce/algorithms/mailbox/mailbox.hpp"
#include "labs/06_allreduce/algorithms/two_shot/rendezvous.hpp"

namespace symm {

/// Each rank's symmetric memory.
struct ProtocolMemory {
    static constexpr int kPushRanks = 3;  ///< With two, no result is for two peers.
    static constexpr unsigned kElements = 256;
    static constexpr std::size_t kPackets = 16;  ///< A bank has this many for a sender.
    BarrierMemory barrier;
    RendezvousMemory rendezvous;
    CopyMemory copy;
    Epochs one_shot;
    alignas(16) simt::Pack16 scratch[2][1][kPackets];
    Epochs sentinel;
    alignas(16) simt::Pack16 sentinel_banks[2][1][kPackets];
    Epochs push;
    alignas(16) simt::Pack16 push_banks[2][2][kPushRanks - 1][kPackets];
    alignas(16) float in[kElements];
    alignas(16) float out[kElements];
};

/// Memory whose counters are as if `epoch` calls had been made, and in which all packets of one
/// shot have the flag `stale`. All parts but the buffers consist of words.
inline std::unique_ptr<ProtocolMemory> memory_after(std::uint32_t epoch, std::uint32_t stale) {
    auto memory = std::make_unique<ProtocolMemory>();
    const auto set = [](auto& part, std::uint32_t word) {
        std::fill_n(reinterpret_cast<std::uint32_t*>(&part), sizeof(part) / sizeof(word), word);
    };
    set(memory->barrier, epoch);
    set(memory->rendezvous, epoch);
    set(memory->copy, epoch);
    set(memory->one_shot, epoch);
    set(memory->sentinel, epoch);
    set(memory->push, epoch);
    set(memory->scratch, stale);
    set(memory->sentinel_banks, ~std::uint32_t{0});
    set(memory->push_banks, ~std::uint32_t{0});
    return memory;
}
/// Writes the input of `rank` in call `call`, and poisons the output.
void launch_prepare(CUstream stream, ProtocolMemory* memory, int rank, unsigned call);
/// AllReduce of the first `count` elements. At most 2 x kPackets elements for one shot.
void launch_protocol_one_shot(CUstream stream, SymmetricPointer<ProtocolMemory> memory, int rank,
                              std::size_t count, const simt::Timeout& timeout);
/// At most 4 x kPackets elements.
void launch_protocol_sentinel(CUstream stream, SymmetricPointer<ProtocolMemory> memory, int rank,
                              std::size_t count, const simt::Timeout& timeout);
/// Whole packs, at most one for each of 8 threads.
void launch_protocol_one_pack(CUstream stream, SymmetricPointer<ProtocolMemory> memory, int rank,
                              std::size_t count, const simt::Timeout& timeout);
/// On three ranks. At most 12 x kPackets elements.
void launch_protocol_push(CUstream stream, SymmetricPointer<ProtocolMemory> memory, int rank,
                          std::size_t count, const simt::Timeout& timeout);
void launch_protocol_two_shot(CUstream stream, SymmetricPointer<ProtocolMemory> memory, int rank,
                              std::size_t count, const simt::Timeout& timeout);
/// Adds to `*wrong`, in device memory, the number of wrong elements: the first `count` must be the
/// sum of `ranks` ranks, the others poison.
void launch_compare(CUstream stream, const ProtocolMemory* memory, int ranks, std::size_t count,
                    unsigned call, unsigned* wrong);

/// A rank and its symmetric memory, after memory_after() and the preparation of call 0.
struct ProtocolSide {
    explicit ProtocolSide(Rank& r, std::chrono::nanoseconds limit = Deadline::standard_limit(),
                          std::uint32_t epoch = 0, std::uint32_t stale = 0)
        : rank(r), range(r, sizeof(ProtocolMemory)), timeout(limit) {
        copy_to_device(range.local(), memory_after(epoch, stale).get(), sizeof(ProtocolMemory));
        prepare(0);
        stream.synchronize();
        rank.bootstrap().barrier("reset");
    }

    void prepare(unsigned call) { launch_prepare(stream.get(), local, rank.rank(), call); }
    void compare(int ranks, std::size_t count, unsigned call) {
        launch_compare(stream.get(), local, ranks, count, call, wrong.as<unsigned>());
    }
    void synchronize() { timeout.synchronize(stream, "the AllReduces"); }
    /// Waits for all calls, which must have been right.
    void expect_right() {
        synchronize();
        unsigned errors = 0;
        copy_to_host(&errors, wrong.address(), sizeof(errors));
        EXPECT_EQ(errors, 0U) << "wrong values on rank " << rank.rank();
        rank.bootstrap().barrier("done");
    }

    Rank& rank;
    SymmetricRange range;
    KernelTimeout timeout;
    Stream stream;
    DeviceMemory wrong{sizeof(unsigned)};
    ProtocolMemory* local = range.at<ProtocolMemory>(rank.rank());
};

}  // namespace symm
