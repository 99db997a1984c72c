// The ladder's rungs in every execution.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/ladder/2_barrier.hpp"
#include "labs/06_allreduce/algorithms/ladder/3_packets.hpp"
#include "labs/06_allreduce/algorithms/ladder/4_sentinel.hpp"
#include "labs/06_allreduce/algorithms/ladder/5_two_shots.hpp"
#include "labs/06_allreduce/algorithms/ladder/6_push.hpp"
#include "labs/06_allreduce/algorithms/ladder/fused.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm::ladder {
namespace {

using explore::Protocol;
using explore::Scene;
using simt::ThreadBlock;

struct Calls {
    int ranks;
    explore::Shape shape;
    std::vector<std::size_t> floats;  ///< Of each call.
    std::uint32_t last = 0;           ///< The number of the call before the first.
    bool rounds = false;              ///< Another order of three ranks gives other sums.
};

float x(const Calls& calls, int rank, unsigned call, std::size_t i) {
    if (calls.rounds) {
        constexpr float kLarge = 1 << 24;
        return rank == 0 ? static_cast<float>(3 + 2 * i) : rank == 1 ? kLarge : -kLarge;
    }
    return static_cast<float>(1 + rank + 10 * static_cast<int>(call) + 100 * static_cast<int>(i));
}
float sum(const Calls& calls, unsigned call, std::size_t i) {
    float sum = 0;
    for (int p = 0; p < calls.ranks; ++p) {
        sum += x(calls, p, call, i);
    }
    return sum;
}

/// Each call adds to the residual, which begins as 1.
float residual_after(const Calls& calls, unsigned call, std::size_t i) {
    float all = 1;
    for (unsigned c = 0; c <= call; ++c) {
        all += i < calls.floats[c] ? sum(calls, c, i) : 0;
    }
    return all;
}

void check(const Calls& calls, unsigned call, bool fused, const float* out) {
    const std::size_t count = calls.floats[call];
    for (std::size_t row = 0; row < count; row += kRowFloats) {
        const std::size_t end = std::min(row + kRowFloats, count);
        float squares = 0;
        for (std::size_t i = row; fused && i < end; ++i) {
            squares += residual_after(calls, call, i) * residual_after(calls, call, i);
        }
        const float rms = std::sqrt(squares / static_cast<float>(end - row));
        for (std::size_t i = row; i < end; ++i) {
            const float expected =
                fused ? residual_after(calls, call, i) / rms : sum(calls, call, i);
            if (std::abs(out[i] - expected) > (fused ? 1e-4F : 0)) {
                explore::fail(fmt::format("call {}, element {}: {} instead of {}", call, i, out[i],
                                          expected));
            }
        }
    }
}

/// A rank's calls: in each one the kernels, one after the other.
template <class... Kernels>
void fill(Scene& scene, const Calls& calls, std::uint64_t empty, bool fused) {
    const std::size_t most = *std::ranges::max_element(calls.floats);
    const auto in = explore::symmetric_zeroed<float>(scene, calls.ranks, "in", most);
    const auto out = explore::symmetric_zeroed<float>(scene, calls.ranks, "out", most);
    const auto barrier = explore::symmetric_zeroed<BarrierMemory>(scene, calls.ranks, "barrier");
    const auto per_sender = static_cast<unsigned>(most / 2 + 1);  // packets, or packs
    const std::size_t all_slots = std::size_t{2} * static_cast<unsigned>(calls.ranks) * per_sender;
    const auto slots = explore::symmetric_zeroed<Pack>(scene, calls.ranks, "slots", all_slots);
    for (int rank = 0; rank < calls.ranks; ++rank) {
        std::fill_n(slots.of(rank), all_slots, Pack{{empty, empty}});
        auto* const residual = scene.zeroed<float>(most, "residual", rank);
        std::fill_n(residual, most, 1.0F);
        auto* const epochs = scene.zeroed<Epochs>(1, "epochs", rank);
        std::ranges::fill(epochs->of_block, calls.last);
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Rung all_calls{timeout, rank,     calls.ranks, in,
                             out,     residual, 0,           {barrier, rank, calls.ranks},
                             epochs,  slots,    per_sender};
        explore::Shape shape = calls.shape;
        shape.shared_bytes = shape.threads.x * static_cast<unsigned>(sizeof(float));
        scene.launch(rank, shape, [=](const ThreadBlock& block) {
            const bool is_first = block.grid_rank() == 0;
            Rung rung = all_calls;
            for (unsigned c = 0; c < calls.floats.size(); ++c) {
                rung.count = calls.floats[c];
                for (std::size_t i = 0; is_first && i < rung.count; ++i) {
                    in.of(rank)[i] = x(calls, rank, c, i);
                }
                explore::kernel_end();
                ((Kernels{rung}(block), explore::kernel_end()), ...);
                if (is_first && !explore::gave_up(timeout)) {
                    check(calls, c, fused, out.of(rank));
                }
            }
        });
    }
}

template <class... Kernels>
void add(std::vector<Protocol>& scenes, const std::string& rung, std::uint64_t empty,
         bool fused = false) {
    const auto scene = [&](const std::string& name, const Calls& calls) {
        scenes.push_back({"ladder/" + rung + name,
                          [=](Scene& scene) { fill<Kernels...>(scene, calls, empty, fused); },
                          false, 600});
    };
    scene("/2x1", {2, {}, {5, 3, 5}});
    scene("/2x2", {2, {.threads = 2}, {7, 7}});
    scene("/2x1x2", {2, {.blocks = 2}, {7, 7}});
    scene("/2x2x2", {2, {.blocks = 2, .threads = 2}, {12, 1, 11}});
    scene("/3x1", {3, {}, {5}});
    scene("/3x2", {3, {.threads = 2}, {12, 4, 9}});
    scene("/3x1x2", {3, {.blocks = 2}, {8, 1, 8}});
    scene("/3x1/order", {3, {}, {5}, 0, true});
    if (fused) {  // a block adds up one row after another
        scene("/1x2/rows", {1, {.threads = 2}, {2 * kRowFloats + 4}});
    }
    scene("/2x1/wrap", {2, {}, {5, 3, 5, 5}, 0xfffffffd});
}

}  // namespace
}  // namespace symm::ladder

int main(int argc, char** argv) {
    using namespace symm::ladder;
    std::vector<symm::explore::Protocol> scenes;
    add<WithBarrier>(scenes, "2_barrier", 0);
    add<ByPackets>(scenes, "3_packets", 0);
    add<BySentinel>(scenes, "4_sentinel", symm::kSentinel);
    add<InTwoShots>(scenes, "5_two_shots", 0);
    add<ByPush>(scenes, "6_push", symm::kSentinel);
    add<BySentinel, AddResidual, Normalize>(scenes, "7_three_launches", symm::kSentinel, true);
    add<BySentinel, AddAndNormalize>(scenes, "8_two_launches", symm::kSentinel, true);
    add<InOneKernel>(scenes, "9_one_kernel", symm::kSentinel, true);
    return symm::explore::explore_main(argc, argv, scenes);
}
