#pragma once
/// \file
/// Calls that overlap: a rank's stream has a kernel that fills the input of all calls, then each
/// call as a dependent launch, then a kernel that checks all outputs. The first and the last one
/// know nothing of dependent launches, as those of a library. Each call has its own buffers.

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "labs/06_allreduce/explore/calls.hpp"

namespace symm {

/// Adds a rank's stream. `kernel(block, count, buffers)` makes a call.
template <class T, class Kernel>
void launch_overlapping(Scene& scene, const Calls& calls, int rank, const simt::Timeout& timeout,
                        const Kernel& kernel) {
    std::vector<Buffers> buffers;
    for (std::size_t c = 0; c < calls.counts.size(); ++c) {
        buffers.push_back(buffers_of<T>(scene, calls, rank, std::to_string(c + 1)));
    }
    const auto for_calls = [=](const auto& use) {
        for (unsigned c = 0; c < buffers.size() && !explore::gave_up(timeout); ++c) {
            use(c, buffers[c]);
        }
    };
    scene.launch(
        rank, {},
        [=](const ThreadBlock&) {
            for_calls([&](unsigned c, const Buffers& of) {
                fill<T>(calls, rank, c, of.in, of.out);
                const std::size_t written =
                    of.in == of.out ? 0 : calls.counts[c] * calls.parts_out();
                std::fill_n(elements<T>(of.out), written, kBefore<T>);  // no store may come earlier
                after<T>(calls, c, of.out) = kAfter<T>;
            });
        },
        LaunchOrder::kAfter);
    for (std::size_t c = 0; c < buffers.size(); ++c) {
        scene.launch(
            rank, {calls.who.blocks, calls.who.threads},
            [=](const ThreadBlock& block) {
                if (calls.other.triggers_first) {
                    block.launch_dependents();
                }
                kernel(block, calls.counts[c], buffers[c]);
            },
            LaunchOrder::kDependent);
    }
    scene.launch(
        rank, {},
        [=](const ThreadBlock&) {
            for_calls([&](unsigned c, const Buffers& of) { check<T>(calls, rank, c, of.out); });
        },
        LaunchOrder::kAfter);
}

}  // namespace symm
