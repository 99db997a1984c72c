// all_reduce() in every execution: some ranks, each with two calls.

#include <tools/explore/cuda_kernel.hpp>
#include <tools/explore/explore_main.hpp>

#include "all_reduce.cuh"

using symm::explore::Scene;
using symm::explore::Shape;

void calls(Scene& scene, int ranks, const Shape& shape) {
    const int elements = 4 * ranks;
    Ranks all{};
    all.count = ranks;
    float* in[kMostRanks] = {};
    for (int r = 0; r < ranks; ++r) {
        all.flags[r] = scene.zeroed<Flags>(1, "flags", r);
        scene.name(all.flags[r]->began, kMostBlocks, "began", r);
        scene.name(all.flags[r]->summed, kMostBlocks, "summed", r);
        all.in[r] = in[r] = scene.allocate<float>(elements, "in", r);
        all.sums[r] = scene.allocate<float>(4, "sums", r);
    }
    for (int r = 0; r < ranks; ++r) {
        float* const mine = in[r];
        float* const out = scene.allocate<float>(elements, "out", r);
        all.rank = r;
        const auto fill = [=](int call) {
            for (int i = blockIdx.x == 0 && threadIdx.x == 0 ? 0 : elements; i < elements; ++i) {
                mine[i] = 1 + r + 10 * call + 100 * i;
            }
        };
        const auto check = [=](int call) {
            for (int i = blockIdx.x == 0 && threadIdx.x == 0 ? 0 : elements; i < elements; ++i) {
                const float sum = ranks * (10 * call + 100 * i) + ranks * (ranks + 1) / 2;
                if (out[i] != sum) {
                    symm::explore::fail("a sum is wrong");
                }
            }
        };
        const auto kernel = [=] { all_reduce(all, out, elements); };
        run_kernels(scene, r, shape,
                    {[=] { fill(0); }, kernel, [=] { check(0); }, [=] { fill(1); }, kernel,
                     [=] { check(1); }});
    }
}

int main(int argc, char** argv) {
    const auto with = [](int ranks, const Shape& shape) {
        return [=](Scene& scene) { calls(scene, ranks, shape); };
    };
    return symm::explore::explore_main(
        argc, argv,
        {
            {"all_reduce/2x2", with(2, {.threads = 2}), false},
            {"all_reduce/2x2x2", with(2, {.blocks = 2, .threads = 2}), false},
            {"all_reduce/3x3", with(3, {.threads = 3}), false},
        });
}
