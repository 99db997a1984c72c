// Multicast addresses: each rank's memory is accessed for itself, in no order but that of a
// release, and by multimem instructions alone. Exit status 0 if each report is as expected.

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/simt/multimem.hpp"
#include "tools/explore/explore.hpp"
#include "tools/explore/tests/is_as_expected.hpp"

namespace symm::explore {
namespace {

using simt::Order;
using simt::Pack16;
using simt::ThreadBlock;

struct Memory {
    Pack16 data;
    std::uint32_t flag, count;
};
Memory* of[2];  // of each rank, zeroed
Memory* all;    // the multicast address of both

void add_to_count(const ThreadBlock& block, bool fence = true) {
    simt::add_to_all(block, &all->count, 1);
    if (fence) {
        simt::fence_alias();
    }
}
void wait_for_count(int rank, std::uint32_t count, Order order = Order::kAcquire) {
    await([=] { return simt::load(&of[rank]->count, order) == count; }, nullptr);
}
Pack16 sum_of_all(const ThreadBlock& block) {
    return simt::load_reduce<std::uint64_t, simt::SwitchOp::kAdd>(block, &all->data);
}
/// Each rank stores one more than its number, and adds up what both have stored.
void reduce(const ThreadBlock& block, int rank, Order order, bool fence_before = true,
            bool fence_after = false) {
    of[rank]->data = {{static_cast<std::uint64_t>(rank + 1), 10}};
    if (fence_before) {
        simt::fence_alias();
    }
    add_to_count(block);
    wait_for_count(rank, 2, order);
    if (fence_after) {
        simt::fence_alias();
    }
    const Pack16 sum = sum_of_all(block);
    if (sum.half[0] != 3 || sum.half[1] != 20) {
        fail(fmt::format("the sum is {}, {}", sum.half[0], sum.half[1]));
    }
}
/// `first` waits for the other rank's addition, and looks whether that has come to both.
void add_and_look(const ThreadBlock& block, int rank, int first) {
    if (rank != first) {
        add_to_count(block);
        return;
    }
    wait_for_count(first, 1);
    if (simt::load(&of[1 - first]->count, Order::kRelaxed) == 0) {
        fail(fmt::format("not to rank {} yet", 1 - first));
    }
}

struct Case {
    std::string name;
    std::string report;  ///< A regular expression, of its counterexample or its executions.
    std::function<void(const ThreadBlock& block, int rank)> kernel;
};

const Case kCases[] = {
    {"a sum after a barrier", "^14 executions",
     [](const ThreadBlock& block, int rank) { reduce(block, rank, Order::kAcquire); }},
    {"a sum after a relaxed wait", "=> data race on r..memory",
     [](const ThreadBlock& block, int rank) { reduce(block, rank, Order::kRelaxed); }},
    {"a sum after a barrier, with the fence behind it", "^14 executions",
     [](const ThreadBlock& block, int rank) { reduce(block, rank, Order::kAcquire, false, true); }},
    {"a sum after a barrier, without a fence", "=> no fence_alias.. between accesses of r..memory",
     [](const ThreadBlock& block, int rank) { reduce(block, rank, Order::kAcquire, false); }},
    {"a fence before what it should order", "=> no fence_alias.. between accesses of r..memory",
     [](const ThreadBlock& block, int rank) {
         simt::fence_alias();
         reduce(block, rank, Order::kAcquire, false);
     }},
    {"a fence in the kernel's end", "^[0-9]+ executions",
     [](const ThreadBlock& block, int rank) {
         of[rank]->data = {{1, 10}};
         add_to_count(block);
         wait_for_count(rank, 2);
         kernel_end();
         sum_of_all(block);
     }},
    {"a sum before the barrier", "=> data race on r1.memory",
     [](const ThreadBlock& block, int rank) {
         rank == 0 ? void(sum_of_all(block)) : void(of[1]->data = {{1, 1}});
     }},
    {"a store to all, and its announcement", "^[0-9]+ executions",
     [](const ThreadBlock& block, int rank) {
         if (rank == 0) {
             simt::store_to_all(block, &all->data, {{5, 6}});
             add_to_count(block);
         }
         wait_for_count(rank, 1);
         simt::fence_alias();
         if (of[rank]->data.half[0] != 5 || of[rank]->data.half[1] != 6) {
             fail("it has not come");
         }
     }},
    {"a store to all says nothing of another one", "=> the second one came first",
     [](const ThreadBlock& block, int rank) {
         if (rank == 0) {
             simt::store_to_all(block, &all->data, {{5, 6}});
             simt::store(&of[1]->flag, 1U, Order::kRelaxed);
             return;
         }
         await([] { return simt::load(&of[1]->flag, Order::kAcquire) == 1; }, nullptr);
         if (simt::load_relaxed(&of[1]->data).half[0] != 5) {
             fail("the second one came first");
         }
     }},
    {"it comes to either rank first", "=> to one of them",
     [](const ThreadBlock& block, int rank) {
         if (rank == 0) {
             simt::store_to_all(block, &all->data, {{5, 6}});
             return;
         }
         const std::uint64_t other = simt::load_relaxed(&of[1]->data).half[0];
         if (other == 5 && simt::load_relaxed(&of[0]->data).half[0] == 0) {
             fail("to one of them");
         }
     }},
    {"additions of two ranks", "^14 executions",
     [](const ThreadBlock& block, int rank) {
         add_to_count(block);
         wait_for_count(rank, 2);
     }},
    {"additions of two ranks, without a fence", "=> no fence_alias.. between accesses of r..memory",
     [](const ThreadBlock& block, int rank) {
         add_to_count(block, false);
         wait_for_count(rank, 2);
     }},
    {"an addition comes to rank 1 first", "=> not to rank 0 yet",
     [](const ThreadBlock& block, int rank) { add_and_look(block, rank, 1); }},
    {"an addition comes to rank 0 first", "=> not to rank 1 yet",
     [](const ThreadBlock& block, int rank) { add_and_look(block, rank, 0); }},
    {"a plain store", "=> r0.b0.t0 stores into all.*only a multimem instruction",
     [](const ThreadBlock&, int) {
         all->data = {{1, 1}};
     }},
    {"a plain load", "=> r0.b0.t0 loads all.*only a multimem instruction",
     [](const ThreadBlock&, int) { of[0]->data = all->data; }},
    {"an atomic load", "=> r0.b0.t0 loads all.*only a multimem instruction",
     [](const ThreadBlock&, int) { simt::load(&all->flag, Order::kRelaxed); }},
    {"a multimem instruction elsewhere", "=> r0.b0.t0 accesses .*: no multicast address",
     [](const ThreadBlock& block, int) { simt::add_to_all(block, &of[0]->count, 1); }},
};

}  // namespace
}  // namespace symm::explore

int main() {
    using namespace symm::explore;
    return explore_all(kCases, [](Scene& scene, const Case& one) {
        for (int rank = 0; rank < 2; ++rank) {
            of[rank] = scene.zeroed<Memory>(1, "memory", rank);
        }
        all = scene.multicast<Memory>({of[0], of[1]}, 1, "all");
        for (int rank = 0; rank < 2; ++rank) {
            scene.launch(rank, {},
                         [&, rank](const ThreadBlock& block) { one.kernel(block, rank); });
        }
    });
}
