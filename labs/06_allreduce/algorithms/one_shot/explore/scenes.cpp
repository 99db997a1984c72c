// One shot by packets, call after call, in every execution.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"
#include "labs/06_allreduce/explore/mailbox.hpp"

namespace symm {
namespace {

/// What each rank has in each element, and the result.
template <class T>
struct Numbers {
    std::vector<T> of_ranks;
    T result;
};

/// A call of a type and an operation, of one packet.
template <class T>
auto arithmetic(DataType type, ReduceOp op, const Numbers<T>& of) {
    return [=](Scene& scene) {
        constexpr int kMost = 3;
        constexpr std::size_t kCount = sizeof(simt::Pack8) / sizeof(T);
        const auto ranks = static_cast<int>(of.of_ranks.size());
        const auto slots = explore::symmetric_zeroed<simt::Pack16>(scene, ranks, "slots", 4);
        for (int rank = 0; rank < ranks; ++rank) {
            auto* const epochs = scene.zeroed<Epochs>(1, "epochs", rank);
            auto* const in = scene.allocate<T>(kCount, "in", rank);
            auto* const out = scene.allocate<T>(kCount, "out", rank);
            std::fill_n(in, kCount, of.of_ranks[static_cast<std::size_t>(rank)]);
            const KernelParams basic{{Reduction(op, ranks, is_signed_integer(type)),
                                      explore::timeout_of(scene, rank), rank, ranks},
                                     {{type, op},
                                      reinterpret_cast<CUdeviceptr>(in),
                                      reinterpret_cast<CUdeviceptr>(out),
                                      kCount}};
            const T result = of.result;
            scene.launch(rank, {}, [=](const ThreadBlock& block) {
                OneShot<T, kMost>{{basic, {epochs, slots, 1}, basic, kCount}}(block);
                for (std::size_t i = 0; i < kCount; ++i) {
                    const T seen = explore::result(out + i);
                    if (std::memcmp(&seen, &result, sizeof(T)) != 0) {
                        fail(fmt::format("element {} has other bits than it should", i));
                    }
                }
            });
        }
    };
}

/// Each operation of a type on the ranks' 7, 3 and 5, times `factor`: exact in every type.
template <class T>
void add_each_op(std::vector<explore::Protocol>& scenes, DataType type, double factor) {
    const auto as = [](double value) {
        if constexpr (std::is_unsigned_v<T>) {  // as are signed ones, too
            return static_cast<T>(static_cast<std::int64_t>(value));
        } else {
            return static_cast<T>(static_cast<float>(value));
        }
    };
    for (const std::size_t ranks : {2U, 3U}) {
        const bool three = ranks == 3;
        const double product = factor * factor * (three ? 105 * factor : 21);
        const std::pair<ReduceOp, double> results[] = {
            {ReduceOp::kSum, factor * (three ? 15 : 10)},
            {ReduceOp::kProd, product},
            {ReduceOp::kMax, factor * (factor < 0 ? 3 : 7)},
            {ReduceOp::kMin, factor * (factor < 0 ? 7 : 3)},
            {ReduceOp::kAvg, factor * 5}};
        for (const auto& [op, result] : results) {
            if (std::abs(result) < 1e15) {
                Numbers<T> of{{as(7 * factor), as(3 * factor), as(5 * factor)}, as(result)};
                of.of_ranks.resize(ranks);
                scenes.push_back({fmt::format("arithmetic/each/{}/{}/{}x1/{}", name_of(type),
                                              name_of(op), ranks, factor),
                                  arithmetic<T>(type, op, of), false});
            }
        }
    }
}

/// Types and operations with numbers at which they differ from others.
std::vector<explore::Protocol> arithmetics() {
    using Limits = std::numeric_limits<float>;
    const auto half = [](float value) { return __float2half_rn(value); };
    const auto bfloat16 = [](float value) { return __float2bfloat16_rn(value); };
    const auto words = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    constexpr auto kMinus = static_cast<std::uint8_t>(-1);
    constexpr float kNan = Limits::quiet_NaN();
    std::vector<explore::Protocol> scenes;
    const auto add = [&]<class T>(DataType type, ReduceOp op, const Numbers<T>& of) {
        scenes.push_back(
            {fmt::format("arithmetic/{}/{}/{}", name_of(type), name_of(op), scenes.size()),
             arithmetic<T>(type, op, of), false});
    };
    using enum DataType;
    using enum ReduceOp;
    add(kInt8, kAvg, Numbers<std::uint8_t>{{kMinus, kMinus}, kMinus});
    add(kUint8, kAvg, Numbers<std::uint8_t>{{200, 100}, 22});  // the sum wraps
    add(kInt8, kMax, Numbers<std::uint8_t>{{kMinus, 1}, 1});
    add(kUint8, kMax, Numbers<std::uint8_t>{{1, kMinus}, kMinus});
    add(kInt32, kMin, Numbers<std::uint32_t>{{~0U, 1}, ~0U});
    add(kUint32, kMin, Numbers<std::uint32_t>{{~0U, 1}, 1});
    add(kInt64, kMin, Numbers<std::uint64_t>{{words(-1), 1}, words(-1)});
    add(kUint64, kMin, Numbers<std::uint64_t>{{1ULL << 32, 1ULL << 33}, 1ULL << 32});
    add(kInt64, kMax, Numbers<std::uint64_t>{{words(-1), 1}, 1});
    add(kInt64, kAvg, Numbers<std::uint64_t>{{words(-5), words(-6)}, words(-5)});
    add(kUint64, kMax, Numbers<std::uint64_t>{{words(-1), 1}, words(-1)});
    add(kUint64, kProd, Numbers<std::uint64_t>{{1ULL << 33, 1ULL << 30}, 1ULL << 63});
    add(kFloat, kMax, Numbers<float>{{kNan, 1}, 1});
    add(kFloat, kMin, Numbers<float>{{1, kNan}, 1});
    add(kFloat, kMax, Numbers<float>{{0.F, -0.F}, 0.F});
    add(kFloat, kMin, Numbers<float>{{0.F, -0.F}, -0.F});
    add(kFloat, kMin, Numbers<float>{{-1, Limits::infinity()}, -1});
    add(kFloat, kProd, Numbers<float>{{3, -5}, -15});
    add(kDouble, kAvg, Numbers<double>{{1, 2}, 1.5});
    add(kDouble, kMax, Numbers<double>{{-2, -1}, -1});
    add(kHalf, kAvg, Numbers<__half>{{half(40000), half(40000)}, half(40000)});  // no half's sum
    add(kHalf, kMax, Numbers<__half>{{half(-0.F), half(0.F)}, half(0.F)});
    add(kBfloat16, kProd, Numbers<__nv_bfloat16>{{bfloat16(3), bfloat16(7)}, bfloat16(21)});
    for (const double sign : {1, -1}) {
        add_each_op<std::uint8_t>(scenes, kInt8, sign);
        add_each_op<std::uint32_t>(scenes, kInt32, sign * (1 << 16));
        add_each_op<std::uint64_t>(scenes, kInt64, sign * static_cast<double>(1ULL << 40));
        add_each_op<__half>(scenes, kHalf, sign);
        add_each_op<__nv_bfloat16>(scenes, kBfloat16, sign);
        add_each_op<float>(scenes, kFloat, sign);
        add_each_op<double>(scenes, kDouble, sign);
    }
    add_each_op<std::uint8_t>(scenes, kUint8, 1);
    add_each_op<std::uint32_t>(scenes, kUint32, 1 << 16);
    add_each_op<std::uint64_t>(scenes, kUint64, static_cast<double>(1ULL << 40));
    // Sums are rounded once, not after each rank.
    add(kHalf, kSum, Numbers<__half>{{half(2048), half(1), half(1)}, half(2050)});
    add(kBfloat16, kSum,
        Numbers<__nv_bfloat16>{{bfloat16(256), bfloat16(1), bfloat16(1)}, bfloat16(258)});
    return scenes;
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    using Word = std::uint32_t;
    const auto one_shot = scenes_of(through_mailbox<OneShot, Word>);
    std::vector<explore::Protocol> scenes = {
        {"one_shot/2x1", one_shot({{2}, {2, 2, 2}})},
        {"one_shot/2x1/2p", one_shot({{2}, {4, 4, 4}})},
        {"one_shot/2x1/odd", one_shot({{2}, {3, 1}})},
        {"one_shot/2x1/mixed", one_shot({{2}, {4, 2, 2, 2, 4}})},
        {"one_shot/2x1/clear", one_shot({{2}, {2, 4, 2, 2, 2, 2, 2, 4}})},
        {"one_shot/2x1/wrap", one_shot({{2}, {2, 2, 2, 2}, {0xfffffffd}})},
        {"one_shot/2x1/in_place", one_shot({{2}, {4, 2, 4}, {.in_place = true}})},
        {"one_shot/2x1/ones", one_shot({{2}, {2, 2, 2}, {.all_ones = true}})},
        {"one_shot/2x2", one_shot({{2, 2}, {4, 2, 4}})},
        {"one_shot/2x1x2", one_shot({{2, 1, 2}, {4, 4, 4}})},
        {"one_shot/2x2x2", one_shot({{2, 2, 2}, {4, 4}}), false},
        {"one_shot/2x1x2/grids", one_shot({{2, 1, 2, true}, {4, 4, 4, 2}})},
        {"one_shot/3x1", one_shot({{3}, {2, 2, 2}})},
        {"one_shot/3x1/mixed", one_shot({{3}, {2, 4, 2, 2, 4}})},
        {"clear/one_shot/2x1", one_shot({{2}, {2, 2, 2, 2, 4, 4}, {.old_packets = true}})},
        {"one_shot/1x1/overlap", one_shot({{1}, {2, 2}, {.overlap = true}})},
        {"one_shot/2x1/overlap", one_shot({{2}, {2, 2}, {.overlap = true}})},
        {"one_shot/2x1/overlap/3", one_shot({{2}, {4, 2, 4}, {.overlap = true}})},
        {"one_shot/2x2/overlap", one_shot({{2, 2}, {4, 4}, {.overlap = true}})},
        {"one_shot/2x33/overlap", one_shot({{2, 33}, {4, 4}, {.overlap = true}}), false},
        {"one_shot/2x1x2/idle", one_shot({{2, 1, 2}, {4, 2, 4}, {.overlap = true}}), false},
    };
    std::ranges::move(arithmetics(), std::back_inserter(scenes));
    return explore::explore_main(argc, argv, scenes);
}
