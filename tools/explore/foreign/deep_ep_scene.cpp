// DeepEP's barrier in every execution: notify() and dispatch(), one after the other, some times.

#include "tools/explore/cuda_kernel.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/foreign/deep_ep.cuh"

using symm::explore::Scene;
using symm::explore::Shape;

namespace {

/// Unique to the ranks, the index and the call.
int word(int from, int to, int index, int call) {
    return 1000 * call + 100 * from + 10 * to + index;
}

void rounds(Scene& scene, int ranks, const Shape& shape, int calls) {
    Ranks all{};
    all.count = ranks;
    for (int r = 0; r < ranks; ++r) {
        all.buffers[r] = scene.zeroed<Buffer>(1, "buffer", r);
        scene.name(all.buffers[r]->signals, kMostRanks, "signals", r);
        scene.name(all.buffers[r]->words, kMostRanks * kPerRank, "words", r);
    }
    for (int r = 0; r < ranks; ++r) {
        int* const sent = scene.allocate<int>(ranks * kPerRank, "sent", r);
        int* const counts = scene.allocate<int>(kPerRank, "counts", r);
        int* const received = scene.allocate<int>(ranks * kPerRank, "received", r);
        all.rank = r;
        const auto fill = [=](int call) {
            for (int i = threadIdx.x == 0 ? 0 : ranks * kPerRank; i < ranks * kPerRank; ++i) {
                sent[i] = word(r, i / kPerRank, i % kPerRank, call);
            }
        };
        const auto check = [=](int call) {
            for (int k = threadIdx.x == 0 ? 0 : kPerRank; k < kPerRank; ++k) {
                int count = 0;
                for (int from = 0; from < ranks; ++from) {
                    count += word(from, r, k, call);
                    if (received[from * kPerRank + k] != word(from, r, k, call)) {
                        symm::explore::fail("a word is wrong");
                    }
                }
                if (counts[k] != count) {
                    symm::explore::fail("a count is wrong");
                }
            }
        };
        std::vector<std::function<void()>> kernels;
        for (int call = 0; call < calls; ++call) {
            kernels.insert(kernels.end(),
                           {[=] { fill(call); }, [=] { notify(all, sent, counts); },
                            [=] { dispatch(all, sent, received); }, [=] { check(call); }});
        }
        run_kernels(scene, r, shape, kernels);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const auto with = [](unsigned threads, int calls) {
        return [=](Scene& scene) { rounds(scene, 2, {.threads = threads}, calls); };
    };
    return symm::explore::explore_main(argc, argv,
                                       {
                                           {"deep_ep/2x2", with(2, 2), false},
                                           {"deep_ep/2x3", with(3, 1), false},
                                       });
}
