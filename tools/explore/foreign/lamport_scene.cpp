// The Lamport AllReduce in every execution: calls one after another, or dependent launches.

#include "tools/explore/cuda_kernel.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/foreign/lamport.cuh"

using symm::LaunchOrder;
using symm::explore::Scene;
using symm::explore::Shape;

namespace {

struct Calls {
    std::vector<int> packs;  // of each call
    LaunchOrder order = LaunchOrder::kAfter;
    bool early = false;  // the kernel triggers at its start
    bool zero = false;   // inputs of rank 0 are -0
};

void calls(Scene& scene, int ranks, const Shape& shape, const Calls& calls) {
    Ranks all{};
    all.count = ranks;
    for (int r = 0; r < ranks; ++r) {
        all.buffers[r] = scene.allocate<Buffers>(1, "buffers", r);
        for (int b = 0; b < kBuffers; ++b) {
            std::fill_n(all.buffers[r]->words[b], kMostWords, kNotCome);
            scene.name(all.buffers[r]->words[b], kMostWords, "buffer" + std::to_string(b), r);
        }
    }
    // Unique to rank, call and index.
    const auto input = [zero = calls.zero](int rank, int call, int i) {
        return zero && rank == 0 ? -0.0F : static_cast<float>(100 * call + 10 * i + rank + 1);
    };
    for (int r = 0; r < ranks; ++r) {
        all.rank = r;
        all.state = scene.zeroed<State>(1, "state", r);
        scene.name(&all.state->counter, 1, "counter", r);
        scene.name(&all.state->flag, 1, "flag", r);
        scene.name(&all.state->dirty, 1, "dirty", r);
        std::vector<float*> in;
        std::vector<float*> out;
        for (const int packs : calls.packs) {
            const std::string number = std::to_string(in.size());
            in.push_back(scene.allocate<float>(packs * kWords, "in" + number, r));
            out.push_back(scene.allocate<float>(packs * kWords, "out" + number, r));
        }
        const auto fill = [=, packs = calls.packs](const auto&) {
            for (std::size_t call = 0; call < packs.size(); ++call) {
                for (int i = 0; i < packs[call] * kWords; ++i) {
                    in[call][i] = input(r, call, i);
                }
            }
        };
        const auto check = [=, packs = calls.packs](const auto&) {
            for (std::size_t call = 0; call < packs.size(); ++call) {
                for (int i = 0; i < packs[call] * kWords; ++i) {
                    float sum = 0;
                    for (int p = 0; p < ranks; ++p) {
                        sum += input(p, call, i);
                    }
                    if (out[call][i] != sum) {
                        symm::explore::fail("a sum of call " + std::to_string(call) + " is wrong");
                    }
                }
            }
        };
        const auto kernel = calls.early ? all_reduce<true> : all_reduce<false>;
        scene.launch(r, {}, fill, LaunchOrder::kAfter);
        for (std::size_t call = 0; call < calls.packs.size(); ++call) {
            const int packs = calls.packs[call];
            scene.launch(
                r, shape, [=](const auto&) { kernel(all, in[call], out[call], packs); },
                calls.order);
        }
        scene.launch(r, {}, check, LaunchOrder::kAfter);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const auto with = [](int ranks, const Shape& shape, const Calls& given) {
        return [=](Scene& scene) { calls(scene, ranks, shape, given); };
    };
    const std::vector<int> four{1, 1, 1, 1};
    const std::vector<int> two_each{2, 2, 2, 2};
    const auto dependent = LaunchOrder::kDependent;
    return symm::explore::explore_main(
        argc, argv,
        {
            {"lamport/2x1", with(2, {}, {four}), false},
            {"lamport/2x1/zero", with(2, {}, {.packs = four, .zero = true}), false},
            {"lamport/2x1/sizes", with(2, {}, {{3, 1, 2, 2, 1, 3}}), false},
            {"lamport/2x2", with(2, {.threads = 2}, {two_each}), false},
            {"lamport/2x1x2", with(2, {.blocks = 2}, {two_each}), false},
            {"lamport/3x1", with(3, {}, {four}), false},
            {"lamport/2x1x2/overlap", with(2, {.blocks = 2}, {two_each, dependent}), false},
            {"lamport/2x1x2/early", with(2, {.blocks = 2}, {two_each, dependent, true}), false},
        });
}
