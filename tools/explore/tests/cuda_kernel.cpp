// Plain CUDA kernels in a scene: indices of three dimensions, shuffles, and a dependent launch.
// Exit status 0 if all is as expected.

#include "tools/explore/cuda_kernel.hpp"

#include <fmt/core.h>

#include <array>
#include <functional>
#include <string>

namespace symm::explore {
namespace {

void expect(unsigned seen, unsigned expected) {
    if (seen != expected) {
        fail(fmt::format("{} instead of {}", seen, expected));
    }
}

/// Each thread counts itself at its place. The first one returns without it if `but_one`.
void count(unsigned* counts, bool but_one) {
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const unsigned place = block * blockDim.x * blockDim.y * blockDim.z + thread;
    if (!but_one || place != 0) {
        atomicAdd_system(&counts[place], 1U);
    }
}

/// What lane 13 of the second row of 32 threads gets.
void shuffle() {
    const unsigned lane = threadIdx.x;
    const unsigned value = 100 * threadIdx.y + lane;
    constexpr unsigned kAll = 0xffffffff;
    const std::array<unsigned, 9> seen = {
        __shfl_sync(kAll, value, 5),         __shfl_sync(kAll, value, 3, 8),
        __shfl_xor_sync(kAll, value, 16),    __shfl_xor_sync(kAll, value, 2, 4),
        __shfl_xor_sync(kAll, value, 16, 8), __shfl_down_sync(kAll, value, 18),
        __shfl_down_sync(kAll, value, 19),   __shfl_up_sync(kAll, value, 13),
        __shfl_up_sync(kAll, value, 6, 8)};
    // Its own, where the lane would be 32, or of another group of 8.
    const std::array<unsigned, 9> expected = {105, 111, 129, 115, 113, 131, 113, 100, 113};
    for (std::size_t i = 0; threadIdx.y == 1 && lane == 13 && i < seen.size(); ++i) {
        expect(seen[i], expected[i]);
    }
}

/// Of six lanes, all odd ones, none, and all.
void votes() {
    constexpr unsigned kAll = 0xffffffff;
    expect(__ballot_sync(kAll, static_cast<int>(threadIdx.x % 2)), 0b101010);
    expect(static_cast<unsigned>(__any_sync(kAll, static_cast<int>(threadIdx.x == 5))), 1);
    expect(static_cast<unsigned>(__any_sync(kAll, 0)), 0);
    expect(static_cast<unsigned>(__all_sync(kAll, 2)), 1);
    expect(static_cast<unsigned>(__all_sync(kAll, static_cast<int>(threadIdx.x != 5))), 0);
}

/// Block 0 sets each lane's flag, for which block 1 polls.
void poll(unsigned* flags, bool votes_in_each_round) {
    if (blockIdx.x == 0) {
        atomicOr_system(&flags[threadIdx.x], 6U);
        atomicAnd_system(&flags[threadIdx.x], 3U);
        atomicSub_system(&flags[threadIdx.x], 1U);
        return;
    }
    const long long start = clock64();
    const auto is_set = [=] {
        return symm::explore::ptx::ld_acquire_sys(&flags[threadIdx.x]) == 1;
    };
    constexpr unsigned kAll = 0xffffffff;
    while (votes_in_each_round ? __all_sync(kAll, static_cast<int>(is_set())) == 0 : !is_set()) {
        if (clock64() - start > 1000) {
            fail("the time is over");
        }
    }
    expect(static_cast<unsigned>(__any_sync(kAll, static_cast<int>(!is_set()))), 0);
}

struct Case {
    const char* name;
    const char* report;  ///< The failure; empty: none.
    Shape shape;
    std::function<void(unsigned*)> kernel;
};

const Case kCases[] = {
    {"three dimensions",
     "",
     {{2, 1, 2}, {2, 3, 2}},
     [](unsigned* counts) { count(counts, false); }},
    {"a thread is missing",
     "0 instead of 1",
     {{2, 1, 2}, {2, 3, 2}},
     [](unsigned* counts) { count(counts, true); }},
    {"shuffles", "", {1, {32, 2}}, [](unsigned*) { shuffle(); }},
    {"votes", "", {1, 6}, [](unsigned*) { votes(); }},
    {"a poll with a vote in each round",
     "such a wait is not recognized",
     {2, 2},
     [](unsigned* flags) { poll(flags, true); }},
    {"a poll with a vote behind it", "", {2, 2}, [](unsigned* flags) { poll(flags, false); }},
    {"a vote of half a warp",
     "votes of whole warps",
     {1, 32},
     [](unsigned*) { __any_sync(0xffff, 1); }},
    {"a shuffle of half a warp",
     "shuffles of whole warps",
     {1, 32},
     [](unsigned*) { __shfl_sync(0xffff, 1, 0); }},
    {"a shuffle from a lane that does not exist",
     "reads lane 4, which",
     {1, 4},
     [](unsigned*) { __shfl_sync(0xffffffff, 1, 4); }},
    {"a shuffle whose width is no power of two",
     "the width of a shuffle is 3",
     {1, 4},
     [](unsigned*) { __shfl_sync(0xffffffff, 1, 0, 3); }},
    {"a shuffle from a lane that has returned",
     "reads lane 3, which has returned",
     {1, 4},
     [](unsigned*) {
         if (threadIdx.x != 3) {
             __shfl_sync(0xffffffff, 1, 3);
         }
     }},
    {"a vote without a lane that has returned",
     "",
     {1, 4},
     [](unsigned*) {
         if (threadIdx.x != 3) {
             expect(__ballot_sync(0xffffffff, 1), 0b111);
         }
     }},
};

/// A kernel triggers, then stores what the next one loads, which perhaps waits.
bool dependents_race(bool wait) {
    return explore({},
                   [=](Scene& scene) {
                       auto* const data = scene.zeroed<unsigned>(1, "data");
                       const auto store = [=](const auto&) {
                           cudaTriggerProgrammaticLaunchCompletion();
                           *data = 1;
                       };
                       const auto load = [=](const auto&) {
                           if (wait) {
                               cudaGridDependencySynchronize();
                           }
                           expect(*data, 1);
                       };
                       scene.launch(0, {}, store, LaunchOrder::kAfter);
                       scene.launch(0, {}, load, LaunchOrder::kDependent);
                   })
        .failed;
}

}  // namespace
}  // namespace symm::explore

int main() {
    using namespace symm::explore;
    int wrong = 0;
    if (dependents_race(true) || !dependents_race(false)) {
        fmt::print("a dependent launch must race without its wait, and only then\n");
        ++wrong;
    }
    for (const Case& one : kCases) {
        const Report report = explore({}, [&](Scene& scene) {
            auto* const counts = scene.zeroed<unsigned>(48, "counts");
            const auto check = [counts, &one] {
                const bool counted = one.shape.blocks.z == 2;
                const auto block = this_block();
                for (unsigned i = 0; counted && block.grid_rank() == 0 && i < 48; ++i) {
                    expect(counts[i], 1);
                }
            };
            run_kernels(scene, 0, one.shape, {[counts, &one] { one.kernel(counts); }, check});
        });
        const std::string expected = one.report;
        if (report.failed == expected.empty() || report.why.find(expected) == std::string::npos) {
            fmt::print("{}: expected '{}', not '{}'\n", one.name, expected, report.why);
            ++wrong;
        }
    }
    fmt::print("{} cases are wrong\n", wrong);
    return wrong == 0 ? 0 : 1;
}
