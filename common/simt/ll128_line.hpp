#pragma once
/// \file
/// Lines of 128 bytes, stored and loaded by eight lanes (threads) of a warp at once, 16 bytes
/// each.
///
///     lane      0         1         2        ...        7
///          +---------+---------+---------+---------+---------+------+
///          | 16 bytes| 16 bytes| 16 bytes|   ...   | 8 bytes | flag |
///          +---------+---------+---------+---------+---------+------+
///
/// The eight lanes' stores leave the GPU as one write of 128 bytes. NVLink keeps such a write
/// whole: a thread that sees the flag finds the rest of the line with its next loads. No manual
/// promises it. PCIe may divide such a write, so lines are not for host memory. A load of a line is
/// not whole: on H200s, loads that brought the flag together with the data had old data beside the
/// new flag in one of 30 million lines. So a reader first sees the flag, then loads the data.
///
/// On the host, a line is whole because its flag is stored last, with release. With
/// SYMM_EMU_TORN_PACKS=1 it is not stored last, as on a bus that divides lines.
///
/// Source: NCCL's LL128 protocol (src/device/prims_ll128.h).

#include "common/simt/pack.hpp"
#include "common/simt/waiter.hpp"
#include "common/simt/warp.hpp"

namespace symm::simt {

/// Lanes, and packs, of a line.
inline constexpr unsigned kLineLanes = 8;

/// Whether a lane is the last of its line, whose second half is the flag.
__host__ __device__ inline bool has_line_flag(const Warp& warp) {
    return warp.thread_rank() % kLineLanes == kLineLanes - 1;
}

/// On the host: whether a lane stores after the others of its line.
inline bool host_stores_last(const Warp& warp) {
    return has_line_flag(warp) && !torn_packs.load(std::memory_order_relaxed);
}

/// All 32 lanes of a warp store four lines, each lane its pack at an address of its own.
__host__ __device__ inline void store_line(const Warp& warp, Pack16* at, const Pack16& value) {
    NV_IF_TARGET(NV_IS_HOST, (if (!host_stores_last(warp)) { store_relaxed(at, value); }))
    warp.sync();  // on a GPU, so that all lanes store in one instruction
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (store_relaxed(at, value);), (if (host_stores_last(warp)) {
                          store(&at->half[0], value.half[0], Order::kRelaxed);
                          store(&at->half[1], value.half[1], Order::kRelease);
                      }))
}

/// All 32 lanes of a warp wait until their lines have `flag`, and load them: kRounds times four
/// lines, the rounds side by side. False, on all lanes, where the wait gave up.
template <int kRounds>
__host__ __device__ bool wait_for_lines(const Warp& warp, Waiter& waiter, const Waiting& waiting,
                                        std::uint64_t flag, const Pack16* at,
                                        Pack16 (&pack)[kRounds]) {
    // The last pack of this lane's line.
    const Pack16* const flags = at + (kLineLanes - 1 - warp.thread_rank() % kLineLanes);
    bool arrived = true;
    SYMM_UNROLL
    for (int r = 0; r < kRounds; ++r) {
        arrived = arrived && waiter.until(waiting, [&](std::uint64_t& seen) {
            seen = load(&flags[r * static_cast<int>(kWarpSize)].half[1], Order::kAcquire);
            return seen == flag;
        });
    }
    SYMM_UNROLL
    for (int r = 0; r < kRounds; ++r) {
        pack[r] = load_relaxed(at + r * static_cast<int>(kWarpSize));
    }
    return warp.all(arrived);
}

}  // namespace symm::simt
