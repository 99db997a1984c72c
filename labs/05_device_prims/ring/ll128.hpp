#pragma once
/// \file
/// The protocol LL128: 120 bytes of data and one flag of 8 bytes per line of 128 (ll128_line.hpp).
/// It works only where a line arrives whole; elsewhere the host refuses it (ring_communicator.hpp).
/// A warp moves units of two rounds of four lines, which README.md draws.
///
/// | step s: who | waits for                                  | order   | then does                |
/// |-------------|--------------------------------------------|---------|--------------------------|
/// | sender      | a credit (ll_steps.hpp)                    | relaxed | stores lines with flag s + 1 |
/// | receiver    | the flags of all lines of a unit (all lanes of a warp, together) | acquire, then the data; lines are whole | uses the packs; gives the slot back |
///
/// Source: NCCL's src/device/prims_ll128.h.

#include <cstddef>
#include <cstdint>

#include "common/simt/ll128_line.hpp"
#include "labs/05_device_prims/ring/ll_steps.hpp"

namespace symm {

template <class T, class Group>
class LL128 {
public:
    using Element = T;
    using Shared = typename LLSteps<Group>::Shared;

    /// All threads of the group construct it together, and make all calls together. The group is
    /// made of whole warps. LL128 has no direct forms.
    __host__ __device__ LL128(const Group& group, const RingEnds& ends, const Reduction& reduction,
                              const DirectOutputs<T>&, Shared* shared)
        : group_(group),
          warp_(simt::warp_of(group)),
          reduction_(reduction),
          steps_(group, ends, shared) {}

    /// The most elements of a step, a whole number of units.
    static constexpr std::size_t step_elements(std::uint64_t slot_bytes) {
        return slot_bytes / kUnitBytes * kUnitPacks * kPer;
    }

    /// Makes one step of `count` elements. Does nothing once a wait has given up.
    template <Move kMove>
    __host__ __device__ __forceinline__ void step(const T* source, T* output, std::size_t count) {
        steps_.template step<kMove>([&] { return transfer<kMove>(source, output, count); });
    }

    /// Ends the use of the channel in this kernel.
    __host__ __device__ void finish() const { steps_.finish(); }

private:
    static constexpr std::size_t kPer = kPerPack<T, simt::Pack16>;
    static constexpr std::size_t kUnitBytes = 1024;
    static constexpr std::size_t kUnitPacks = 60;

    // A step between the wait for credit and the return of the slot.
    template <Move kMove>
    __host__ __device__ __forceinline__ bool transfer(const T* source, T* output,
                                                      std::size_t count) {
        constexpr std::size_t kUnitElements = kUnitPacks * kPer;
        const std::size_t units = (count + kUnitElements - 1) / kUnitElements;
        const auto* in =
            reinterpret_cast<const simt::Pack16*>(steps_.ends().from_prev.slot(steps_.received()));
        auto* out = reinterpret_cast<simt::Pack16*>(steps_.ends().to_next.slot(steps_.sent()));
        const unsigned lane = warp_.thread_rank();
        bool arrived = true;
        for (std::size_t unit = group_.thread_rank() / simt::kWarpSize; arrived && unit < units;
             unit += group_.size() / simt::kWarpSize) {
            const std::size_t lines = unit * kUnitBytes / sizeof(simt::Pack16) + lane;
            simt::Pack16 pack[2] = {};
            if constexpr (kMove.source) {
                for_packs(unit, count, [&](int k, std::size_t at, std::size_t left) {
                    pack[k] = load_elements<simt::Pack16>(source + at, left);
                });
            }
            if constexpr (kMove.receive) {
                simt::Pack16 came[2];
                arrived = receive(in + lines, came);
                SYMM_UNROLL
                for (int k = 0; k < 2; ++k) {
                    pack[k] = kMove.source ? reduction_.combine<T>(pack[k], came[k]) : came[k];
                }
            }
            if constexpr (kMove.completes()) {
                pack[0] = reduction_.finish<T>(pack[0]);
                pack[1] = reduction_.finish<T>(pack[1]);
            }
            if (kMove.output && arrived) {
                for_packs(unit, count, [&](int k, std::size_t at, std::size_t left) {
                    store_elements(output + at, pack[k], left);
                });
            }
            if (kMove.send && arrived) {
                send(out + lines, pack);
            }
        }
        return arrived;
    }

    // Calls `use` for each of the lane's packs of a unit that holds elements, with its round, its
    // first element and the number of elements left from there.
    template <class Use>
    __host__ __device__ void for_packs(std::size_t unit, std::size_t count, const Use& use) const {
        const unsigned lane = warp_.thread_rank();
        const std::size_t first = (unit * kUnitPacks + lane) * kPer;
        if (first < count) {
            use(0, first, count - first);
        }
        const std::size_t second =
            (unit * kUnitPacks + simt::kWarpSize + lane - lane / simt::kLineLanes) * kPer;
        if (!simt::has_line_flag(warp_) && second < count) {
            use(1, second, count - second);
        }
    }

    // Waits for the two rounds of a unit. False, on all lanes, if the wait gave up.
    __host__ __device__ bool receive(const simt::Pack16* lines, simt::Pack16 (&pack)[2]) {
        const bool arrived =
            simt::wait_for_lines(warp_, steps_.waiter(), steps_.data(simt::Wait::kLine),
                                 steps_.received() + 1, lines, pack);
        if (simt::has_line_flag(warp_)) {
            pack[0].half[1] = pack[1].half[0];
        }
        return arrived;
    }

    __host__ __device__ void send(simt::Pack16* lines, const simt::Pack16 (&pack)[2]) const {
        simt::Pack16 first = pack[0];
        simt::Pack16 second = pack[1];
        if (simt::has_line_flag(warp_)) {
            const std::uint64_t flag = steps_.sent() + 1;
            first = {{pack[0].half[0], flag}};
            second = {{pack[0].half[1], flag}};
        }
        simt::store_line(warp_, lines, first);
        simt::store_line(warp_, lines + simt::kWarpSize, second);
    }

    Group group_;
    simt::Warp warp_;
    Reduction reduction_;
    LLSteps<Group> steps_;
};

}  // namespace symm
