#pragma once
/// \file
/// Lines of 128 bytes, stored and loaded by eight lanes of a warp at once, 16 bytes each.
///
///     lane      0         1         2        ...        7
///          +---------+---------+---------+---------+---------+------+
///          | 16 bytes| 16 bytes| 16 bytes|   ...   | 8 bytes | flag |
///          +---------+---------+---------+---------+---------+------+
///
/// The eight lanes' stores leave the GPU as one write of 128 bytes. NVLink keeps such a write
/// whole: whoever sees the flag sees the rest of the line. No manual promises it. PCIe may divide
/// it, so lines are not for host memory.
///
/// On the host, lines are whole because the flag is stored last, with release, and each lane looks
/// at its line's flag first, with acquire. With SYMM_EMU_TORN_PACKS=1 the flag is not stored last,
/// as on a bus that divides lines.
///
/// Source: NCCL's LL128 protocol (src/device/prims_ll128.h).

#include "common/simt/pack.hpp"
#include "common/simt/timeout.hpp"
#include "common/simt/warp.hpp"

namespace symm::simt {

/// Lanes, and packs, of a line.
inline constexpr unsigned kLineLanes = 8;

/// Whether a lane is the last of its line, whose second half is the flag.
__host__ __device__ inline bool has_line_flag(const Warp& warp) {
    return warp.thread_rank() % kLineLanes == kLineLanes - 1;
}

/// All 32 lanes of a warp store four lines, each lane its pack at an address of its own.
__host__ __device__ inline void store_line(const Warp& warp, Pack16* at, const Pack16& value) {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (store_relaxed(at, value);), ({
                          const bool whole = !torn_packs.load(std::memory_order_relaxed);
                          if (whole && has_line_flag(warp)) {
                              warp.sync();  // the other lanes have stored
                              store(&at->half[0], value.half[0], Order::kRelaxed);
                              store(&at->half[1], value.half[1], Order::kRelease);
                          } else {
                              store_relaxed(at, value);
                              if (whole) {
                                  warp.sync();
                              }
                          }
                      }))
}

/// All 32 lanes of a warp wait until their lines have `flag`, and load them: kRounds times four
/// lines, the rounds side by side. False, on all lanes, where the wait gave up.
///
/// On a GPU the loads that see the flags are those that bring the data, so all lanes load again
/// until every flag is there, and leave together.
template <int kRounds>
__host__ __device__ bool wait_for_lines(const Warp& warp, Waiter& waiter, const Waiting& waiting,
                                        std::uint64_t flag, const Pack16* at,
                                        Pack16 (&pack)[kRounds]) {
#ifdef SYMM_MUTANT_LINE_ONE_ROUND  // the flags of the other rounds are not looked at
    constexpr int kChecked = 1;
#else
    constexpr int kChecked = kRounds;
#endif
    const unsigned flag_lane = warp.thread_rank() | (kLineLanes - 1);
    NV_IF_ELSE_TARGET(NV_IS_DEVICE,
                      (return waiter.until(
                          waiting,
                          [&](std::uint64_t& seen) {
                              bool arrived = true;
                              SYMM_UNROLL
                              for (int r = 0; r < kRounds; ++r) {
                                  pack[r] = load_relaxed(at + r * static_cast<int>(kWarpSize));
                              }
                              SYMM_UNROLL
                              for (int r = 0; r < kChecked; ++r) {
                                  seen = warp.shfl(pack[r].half[1], flag_lane);
                                  arrived &= seen == flag;
                              }
                              return warp.all(arrived);
                          },
                          [&](bool gave_up) { return warp.any(gave_up); });),
                      (
                          const Pack16* const flags = at + flag_lane - warp.thread_rank();
                          bool arrived = true; for (int r = 0; r < kChecked && arrived; ++r) {
                              arrived = waiter.until(waiting, [&](std::uint64_t& seen) {
                                  seen = load(&flags[r * static_cast<int>(kWarpSize)].half[1],
                                              Order::kAcquire);
                                  return seen == flag;
                              });
                          } for (int r = 0; r < kRounds; ++r) {
                              pack[r] = load_relaxed(at + r * static_cast<int>(kWarpSize));
                          } return warp.all(arrived);))
}

}  // namespace symm::simt
