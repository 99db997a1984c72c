#pragma once
/// \file
/// Rows alone: a block normalizes values that it knows already. So long rows have a scene, which no
/// scene of a call has room for, and the bits of their outputs are checked.

#include "../rms_norm_row.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "scenes.hpp"

namespace symm::collectives {

inline constexpr float kEpsilon = 0.5F;

/// Other orders of a row's additions: the sum of every 32nd part begins with this one, and goes
/// round; or all parts are added up in turn.
enum class OtherOrder : unsigned { kNone, kSecondFirst, kThirdFirst, kPartsInTurn };

/// A row's sum of squares as rms_norm_row.hpp defines it, for blocks of whole warps.
inline float squares_in_order(const std::vector<float>& row, OtherOrder other = OtherOrder::kNone) {
    constexpr unsigned kLanes = symm::simt::kWarpSize;
    constexpr unsigned kPart = 4 * kLanes;
    const auto of_lanes = [](std::array<float, kLanes> lanes) {
        for (unsigned distance = kLanes / 2; distance > 0; distance /= 2) {
            const auto before = lanes;
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                lanes[lane] += before[lane ^ distance];
            }
        }
        return lanes[0];
    };
    const auto parts = static_cast<unsigned>((row.size() + kPart - 1) / kPart);
    const unsigned rounds = (parts + kLanes - 1) / kLanes;
    const bool in_turn = other == OtherOrder::kPartsInTurn;
    const unsigned first = in_turn ? 0 : static_cast<unsigned>(other);
    std::array<float, kLanes> of_every_32nd{};
    float all = 0;
    for (unsigned k = 0; k < rounds * kLanes; ++k) {
        const unsigned part = (k / kLanes + first) % rounds * kLanes + k % kLanes;
        std::array<float, kLanes> of_pack{};
        for (std::size_t i = part * kPart; i < row.size() && i < (part + 1) * kPart; ++i) {
            float& sum = of_pack[i / 4 % kLanes];
            sum = std::fma(row[i], row[i], sum);
        }
        of_every_32nd[part % kLanes] += of_lanes(of_pack);
        all += of_lanes(of_pack);
    }
    return in_turn ? all : of_lanes(of_every_32nd);
}

/// A row of which another order of the parts' sums gives other bits, if it has parts for one.
inline std::vector<float> uneven_row(const RmsNormParams& call, std::uint32_t random) {
    std::vector<float> row(call.hidden);
    bool is_even = true;
    while (is_even) {
        for (float& value : row) {
            random = random * 1664525 + 1013904223;
            value = static_cast<float>(random >> 8) / (1 << 20);
        }
        const float scale = call.scale_of(squares_in_order(row));
        const auto is_same = [&](OtherOrder other) {
            return scale == call.scale_of(squares_in_order(row, other));
        };
        is_even = is_same(OtherOrder::kPartsInTurn) ||
                  (call.hidden > 64 * 128 &&
                   (is_same(OtherOrder::kSecondFirst) || is_same(OtherOrder::kThirdFirst)));
    }
    return row;
}

/// A block's rows, one after another, whose values are known already. Their outputs have the bits
/// that the order of all additions gives.
inline void fill_rows(Scene& scene, unsigned hidden, unsigned rows) {
    auto* const weights = scene.allocate<float>(hidden, "weight", 0);
    auto* const out = scene.allocate<float>(std::size_t{rows} * hidden, "out", 0);
    std::fill_n(weights, hidden, 1.0F);
    const RmsNormParams call{{{symm::Reduction(symm::ReduceOp::kSum, 1), {}, 0, 1},
                              {},
                              {{}, 0, reinterpret_cast<CUdeviceptr>(out), rows * hidden}},
                             0,
                             reinterpret_cast<CUdeviceptr>(weights),
                             rows,
                             hidden,
                             kEpsilon};
    const auto values = std::make_shared<std::vector<std::vector<float>>>();
    for (unsigned row = 0; row < rows; ++row) {
        values->push_back(uneven_row(call, row));
    }
    const auto kernel = [=](const ThreadBlock& block) {
        RowNorm<float> norm(block, call);
        for (unsigned row = 0; row < rows; ++row) {
            norm.for_packs(row, [&](unsigned, unsigned i) {
                Pack pack;
                symm::explore::unseen(
                    [&] { std::memcpy(&pack, &(*values)[row][std::size_t{4} * i], sizeof pack); });
                norm.take(i, pack);
            });
            norm.finish(row, true);
        }
        block.sync();
        for (unsigned row = 0; block.thread_rank() == 0 && row < rows; ++row) {
            float expected = 0;
            symm::explore::unseen([&] {
                const std::vector<float>& all = (*values)[row];
                expected = all[0] * call.scale_of(squares_in_order(all));
            });
            if (out[row * hidden] != expected) {
                symm::explore::fail("a row has other bits");
            }
        }
    };
    scene.launch(0, {.threads = 64, .shared_bytes = RowNorm<float>::shared_bytes(hidden)}, kernel);
}

/// Elements of float8, of which some are too large: the second pack of all.
inline void fill_float8(Scene& scene) {
    constexpr std::array kValues = {1.F, -1.F, 1000.F, -1000.F, 2.F, 896.F, 0.F, 3.F};
    // Divided by 2: 0.5, -0.5, the largest and the least, 1, the largest, 0, 1.5.
    constexpr std::array<std::uint8_t, kValues.size()> kExpected = {0x30, 0xb0, 0x7e, 0xfe,
                                                                    0x38, 0x7e, 0,    0x3c};
    auto* const weights = scene.allocate<float>(kValues.size(), "weight", 0);
    auto* const scale = scene.allocate<float>(1, "scale", 0);
    auto* const out = scene.zeroed<std::uint8_t>(2 * kValues.size(), "out", 0);
    std::fill_n(weights, kValues.size(), 1.F);
    *scale = 2;
    RmsNormParams call{{{symm::Reduction(symm::ReduceOp::kSum, 1), {}, 0, 1},
                        {},
                        {{}, 0, reinterpret_cast<CUdeviceptr>(out), 2 * kValues.size()}},
                       0,
                       reinterpret_cast<CUdeviceptr>(weights),
                       2,
                       static_cast<unsigned>(kValues.size()),
                       kEpsilon};
    call.out_scale = reinterpret_cast<CUdeviceptr>(scale);
    call.float_weights = true;
    scene.launch(0, {}, [=](const ThreadBlock&) {
        symm::Elements<__half, Pack> sum;
        for (std::size_t i = 0; i < kValues.size(); ++i) {
            sum.at[i] = __float2half_rn(kValues.at(i));
        }
        const RowOutput<__half, false> output(call);
        output.write(1, 0, std::bit_cast<Pack>(sum), 1, output.weights_at(0));
        for (std::size_t i = 0; i < kValues.size(); ++i) {
            if (out[i] != 0 || out[kValues.size() + i] != kExpected.at(i)) {
                symm::explore::fail("element " + std::to_string(i) + " of float8 is wrong");
            }
        }
    });
}

inline Protocol rows(const std::string& name, unsigned hidden, unsigned rows) {
    return {"rms_norm/rows/" + name, [=](Scene& scene) { fill_rows(scene, hidden, rows); }, false};
}

}  // namespace symm::collectives
