// What threads of a block share: syncs that order memory, shuffles and votes that do not, threads
// that have returned, and the block's own memory. Exit status 0 if each report is as expected.

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

#include "common/simt/warp.hpp"
#include "tools/explore/explore.hpp"
#include "tools/explore/tests/is_as_expected.hpp"

namespace symm::explore {
namespace {

using simt::ThreadBlock;
using simt::Warp;

std::uint32_t* word;    // zeroed
std::uint32_t** other;  // a pointer that blocks share, zeroed

std::uint32_t* shared_of(const ThreadBlock& block) {
    return block.shared<std::uint32_t>();
}

/// Thread 0 stores what thread 1 loads, with `between` between them.
auto handed_over(const std::function<void(const Warp&)>& between) {
    return [=](const ThreadBlock& block) {
        if (block.thread_rank() == 0) {
            *word = 1;
        }
        between(Warp(block));
        if (block.thread_rank() == 1 && *word != 1) {
            fail("not handed over");
        }
    };
}

struct Case {
    std::string name;
    std::string report;  ///< A regular expression, of its counterexample or its executions.
    std::function<void(const ThreadBlock&)> kernel;
    unsigned blocks = 1;
};

const Case kCases[] = {
    {"a sync of the warp", "^1 executions", handed_over([](const Warp& warp) { warp.sync(); })},
    {"a shuffle instead", "=> data race on r0.word",
     handed_over([](const Warp& warp) { warp.shfl(1U, 0); })},
    {"a vote instead", "=> data race on r0.word",
     handed_over([](const Warp& warp) { warp.all(true); })},
    {"a lane has returned before a sync of its warp", "^1 executions",
     [](const ThreadBlock& block) {
         block.thread_rank() == 0 ? leave_block() : void(Warp(block).sync());
     }},
    {"a lane has returned before a vote", "^1 executions",
     [](const ThreadBlock& block) {
         block.thread_rank() == 0 ? leave_block() : void(Warp(block).all(true));
     }},
    {"shared memory before its first store", "=> r0.b0.t1 loads r0.shared0.*nothing has written",
     [](const ThreadBlock& block) {
         if (block.thread_rank() == 1) {
             *word = *shared_of(block);
         }
     }},
    {"shared memory of the kernel before", "=> r0.b0.t1 loads r0.shared0.*nothing has written",
     [](const ThreadBlock& block) {
         if (block.thread_rank() == 1) {
             *shared_of(block) = 1;
         }
         kernel_end();
         if (block.thread_rank() == 1) {
             *word = *shared_of(block);
         }
     }},
    {"shared memory of another block", "=> r0.b1.t0 loads r0.shared0, which is .* another block",
     [](const ThreadBlock& block) {
         if (block.grid_rank() == 0) {
             *shared_of(block) = 1;
             *other = shared_of(block);
         }
         kernel_end();
         if (block.group_index() == 1 && block.thread_rank() == 0) {
             *word = **other;
         }
     },
     2},
    {"two counts at a named barrier", "=> threads wait at the named barrier 1 for 3 threads, and",
     [](const ThreadBlock& block) {
         block.host().sync_named(1, block.thread_rank() == 0 ? 3 : 2);
     }},
    {"a thread that aborts", "=> r0.b0.t1 stops: Aborted",
     [](const ThreadBlock& block) {
         if (block.thread_rank() == 1) {
             std::abort();
         }
     }},
};

}  // namespace
}  // namespace symm::explore

int main() {
    using namespace symm::explore;
    return explore_all(kCases, [](Scene& scene, const Case& one) {
        word = scene.zeroed<std::uint32_t>(1, "word", 0);
        other = scene.zeroed<std::uint32_t*>(1, "other", 0);
        scene.launch(0, {one.blocks, 3, sizeof(std::uint32_t)}, one.kernel);
    });
}
