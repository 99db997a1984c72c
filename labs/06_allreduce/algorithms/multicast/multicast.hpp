#pragma once
/// \file
/// AllReduce by the switch, through memory behind a multicast address. Block b of rank r:
///
/// | does                  | to what                          | order   | why                            |
/// |-----------------------|----------------------------------|---------|--------------------------------|
/// | copies its input      | its packs of its own `data`      | plain   | before the release of the barrier |
/// | barrier               | block b of all ranks             | release, acquire | all ranks' packs are there |
/// | one shot: loads all its packs, added up by the switch | all ranks' `data` | relaxed | the sums are its output |
/// | two shots: the same for one of n packs, and stores the sums | into all ranks' `data` | relaxed | only rank r loads and stores these packs |
/// | barrier               | block b of all ranks             | release, acquire | one shot: no rank loads `data` any more; two shots: all sums are there |
/// | two shots: copies the sums | to its output               | plain   | no rank stores there before the next call's first barrier |

#include "common/simt/multimem.hpp"
#include "labs/05_device_prims/multicast_barrier.hpp"
#include "labs/05_device_prims/reduction/elements.hpp"
#include "labs/06_allreduce/algorithms/call.hpp"

namespace symm {

/// Parameters of a call's kernel, for any type.
struct MulticastParams : KernelParams {
    ArrivalView arrivals;
    simt::Pack16* data;      ///< This rank's: room for `count` elements.
    simt::Pack16* all_data;  ///< The multicast address of the same.
    bool two_shots;
};

template <class T>
struct Multicast : MulticastParams {
    using Pack = simt::Pack16;
    static constexpr std::size_t kElements = kPerPack<T, Pack>;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        MulticastBarrier barrier(block, arrivals, timeout);
        const auto* const from = reinterpret_cast<const T*>(in);
        if (!barrier.gave_up()) {  // else peers may still read the data of an earlier call
            for_packs(block, [&](std::size_t i) {
                data[i] = load_elements<Pack>(from + i * kElements, count - i * kElements);
            });
        }
        if (!barrier.arrive_and_wait()) {
            return;
        }
        if (two_shots) {
            // In each round other warps, so that all have work.
            unsigned turn = block.grid_rank() / simt::kWarpSize;
            for_packs(block, [&](std::size_t i) {
                if (static_cast<int>(turn++ % static_cast<unsigned>(ranks)) == rank) {
                    simt::store_to_all(block, all_data + i, reduced(block, i));
                }
            });
        } else {
            for_packs(block, [&](std::size_t i) { store(i, reduced(block, i)); });
        }
        if (!barrier.arrive_and_wait()) {
            return;
        }
        if (two_shots) {
            for_packs(block, [&](std::size_t i) { store(i, data[i]); });
        }
        barrier.store_epoch();
    }

private:
    /// The packs of this thread: on each rank, and in each step, the same.
    template <class Use>
    __host__ __device__ void for_packs(const simt::ThreadBlock& block, const Use& use) const {
        for (std::size_t i = block.grid_rank(); i * kElements < count; i += block.grid_size()) {
            use(i);
        }
    }
    __host__ __device__ void store(std::size_t i, const Pack& pack) const {
        store_elements(reinterpret_cast<T*>(out) + i * kElements, pack, count - i * kElements);
    }
    __host__ __device__ Pack reduced(const simt::ThreadBlock& block, std::size_t i) const {
        const ReduceOp op = reduction.op;
        if (op == ReduceOp::kSum || op == ReduceOp::kAvg) {
            const Pack sum = simt::load_reduce<T, simt::SwitchOp::kAdd>(block, all_data + i);
            return reduction.finish<T>(sum);
        }
        if constexpr (!simt::can_switch<T>(simt::SwitchOp::kMin)) {
            return {};  // refused on the host
        } else if constexpr (std::is_integral_v<T>) {
            return reduction.is_signed ? extreme<std::make_signed_t<T>>(block, i)
                                       : extreme<T>(block, i);
        } else {
            return extreme<T>(block, i);
        }
    }
    template <class Compared>
    __host__ __device__ Pack extreme(const simt::ThreadBlock& block, std::size_t i) const {
        return reduction.op == ReduceOp::kMin
                   ? simt::load_reduce<Compared, simt::SwitchOp::kMin>(block, all_data + i)
                   : simt::load_reduce<Compared, simt::SwitchOp::kMax>(block, all_data + i);
    }
};

}  // namespace symm
