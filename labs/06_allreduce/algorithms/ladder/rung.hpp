#pragma once
/// \file
/// The parameters of the ladder's kernels: an AllReduce of floats by sum, in the simplest form that
/// is right. The ladder is the first section of the lab's page. To have one case less, a rank also
/// sends to itself.
///
/// Rungs 2, 3, 4 and 6 send through slots. These have two banks, and call e uses bank e % 2: a slow
/// peer may still read the other one (mailbox/README.md has the proof).

#include <cstddef>
#include <cstdint>

#include "common/simt/pack.hpp"
#include "common/simt/waiter.hpp"
#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"
#include "labs/06_allreduce/algorithms/mailbox/mailbox.hpp"

namespace symm::ladder {

using Pack = simt::Pack16;  ///< Four floats.
/// Floats of a row of the fused call. The last one may be shorter.
inline constexpr std::size_t kRowFloats = 2048;

struct Rung {
    static constexpr std::size_t kFloats = kPerPack<float, Pack>;

    simt::Timeout timeout;
    int rank;
    int ranks;
    SymmetricPointer<float> in;
    SymmetricPointer<float> out;
    float* residual;  ///< This rank's, of the fused call (fused.hpp).
    std::size_t count;
    BarrierView barrier;
    Epochs* epochs;  ///< This rank's. They number its calls from 1 on.
    /// `[2][ranks][per_sender]` of each rank.
    SymmetricPointer<Pack> slots;
    unsigned per_sender;

    __host__ __device__ std::size_t packs() const { return (count + kFloats - 1) / kFloats; }

    /// Slot i of what `sender` sends to `receiver` in call `epoch`.
    __host__ __device__ Pack* slot(int receiver, int sender, std::uint32_t epoch,
                                   std::size_t i) const {
        const auto row = epoch % 2 * static_cast<unsigned>(ranks) + static_cast<unsigned>(sender);
        return slots.of(receiver) + (std::size_t{row} * per_sender + i);
    }

    /// Pack i of a buffer, with zeros after the last element.
    __host__ __device__ Pack load(const float* buffer, std::size_t i) const {
        const std::size_t at = i * kFloats;
        return at < count ? load_elements<Pack>(buffer + at, count - at) : Pack{};
    }
    /// Stores pack i of a buffer, up to the last element.
    __host__ __device__ void store(float* buffer, std::size_t i, const Pack& pack) const {
        const std::size_t at = i * kFloats;
        if (at < count) {
            store_elements(buffer + at, pack, count - at);
        }
    }
};

/// Adds rank p's floats to the sum of those before. In the order of the ranks, all ranks get the
/// same bits.
template <class AnyPack>
__host__ __device__ void add(AnyPack& sum, int p, const AnyPack& next) {
    sum = p == 0 ? next : Reduction(ReduceOp::kSum, 2).combine<float>(sum, next);
}

}  // namespace symm::ladder
