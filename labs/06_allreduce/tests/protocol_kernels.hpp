#pragma once
/// \file
/// The AllReduce kernels of two ranks, for float and as few packets as a test needs: correct, or as
/// a mutant (cmake/Mutants.cmake). Not in the library, which is compiled only once, for all types.

#include <cuda.h>

#include <cstddef>

#include "common/simt/timeout.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/06_allreduce/launches.hpp"
#include "labs/06_allreduce/one_shot.hpp"

namespace symm {

/// What each of the two ranks has in symmetric memory.
struct ProtocolMemory {
    static constexpr unsigned kElements = 256;
    static constexpr std::size_t kPackets = 16;  ///< Of one sender in one bank.
    BarrierMemory barrier;
    CopyMemory copy;
    OneShotMemory one_shot;
    alignas(16) simt::Pack16 scratch[2][2][kPackets];
    OneShotMemory sentinel;
    alignas(16) simt::Pack16 sentinel_banks[2][1][kPackets];
    alignas(16) float in[kElements];
    alignas(16) float out[kElements];
};

/// Resets the barrier, and sets the epoch of the last call to `epoch` and the flags of all packets
/// to `stale`.
void launch_reset(CUstream stream, ProtocolMemory* memory, std::uint32_t epoch,
                  std::uint32_t stale);
/// Writes the input of `rank` in call `call`, and poisons the output.
void launch_prepare(CUstream stream, ProtocolMemory* memory, int rank, unsigned call);
/// AllReduce of the first `count` elements. At most 2 x kPackets elements for one shot.
void launch_protocol_one_shot(CUstream stream, ProtocolMemory* first, std::size_t stride, int rank,
                              std::size_t count, const simt::Timeout& timeout);
/// At most 4 x kPackets elements.
void launch_protocol_sentinel(CUstream stream, ProtocolMemory* first, std::size_t stride, int rank,
                              std::size_t count, const simt::Timeout& timeout);
void launch_protocol_two_shot(CUstream stream, ProtocolMemory* first, std::size_t stride, int rank,
                              std::size_t count, const simt::Timeout& timeout);
/// Adds to `*wrong`, in device memory, the number of wrong elements: the first `count` must be the
/// sum, the others poison.
void launch_compare(CUstream stream, const ProtocolMemory* memory, std::size_t count, unsigned call,
                    unsigned* wrong);

}  // namespace symm
