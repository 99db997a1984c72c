// Launches of a stream that overlap: how many executions and outcomes small programs have, each
// searched with all three reductions, and what must be found wrong. Exit status 0 if all is as
// expected.

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <memory>
#include <set>
#include <vector>

#include "tools/explore/explore.hpp"
#include "tools/explore/tests/is_as_expected.hpp"

namespace symm::explore {
namespace {

using Block = simt::ThreadBlock;
using Word = std::atomic<int>;
constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto release = std::memory_order_release;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto kAfter = LaunchOrder::kAfter;
constexpr auto kDependent = LaunchOrder::kDependent;

std::array<int, 2> r;  // what loads return
Word *x, *y;           // zero at first
int* data;

using Body = std::function<void(const Block&)>;
struct Kernel {
    LaunchOrder order;
    Body body;
    Shape shape = {};
    int rank = 0;
};
using Kernels = std::vector<Kernel>;

// What kernels do.
template <class... Bodies>
Body both(Bodies... bodies) {
    return [=](const Block& block) { (bodies(block), ...); };
}
void trigger(const Block& block) {
    block.launch_dependents();
}
void wait(const Block& block) {
    block.wait_for_predecessor();
}
void store_x(const Block&) {
    x->store(1, relaxed);
}
void store_2(const Block&) {
    x->store(2, relaxed);
}
void store_y(const Block&) {
    y->store(1, relaxed);
}
void store_data(const Block&) {
    *data = 1;
}
/// By the thread's number.
void load_x(const Block& block) {
    r[block.thread_rank()] = x->load(relaxed);
}
void await_x(const Block&) {
    await([] { return x->load(acquire) == 1; }, nullptr);
}
void await_x_relaxed(const Block&) {
    await([] { return x->load(relaxed) == 1; }, nullptr);
}
void await_y(const Block&) {
    await([] { return y->load(relaxed) == 1; }, nullptr);
}
/// Thread, or block, 0 does this, and number 1 that.
Body by_threads(const Body& zero, const Body& one) {
    return [=](const Block& block) { (block.thread_rank() == 0 ? zero : one)(block); };
}
Body by_blocks(const Body& zero, const Body& one) {
    return [=](const Block& block) { (block.group_index() == 0 ? zero : one)(block); };
}
void nothing(const Block&) {}
void sync(const Block& block) {
    block.sync();
}

struct Counted {
    const char* test;
    std::size_t executions;
    std::size_t outcomes;
    Kernels kernels;
};

const Shape kTwoBlocks{.blocks = 2};
const Shape kTwoThreads{.threads = 2};
const Kernel kStores{kAfter, both(trigger, store_x)};
const Kernel kStoresFirst{kAfter, both(store_x, trigger)};
const Kernel kLoads{kAfter, both(trigger, load_x)};
const Kernel kLoadsFirst{kAfter, both(load_x, trigger)};
const Kernel kTriggers{kDependent, trigger};  ///< And never waits.
const Kernel kTriggersWaits{kDependent, both(trigger, wait)};
const Kernel kThenStores{kDependent, store_x};
const Kernel kThenLoads{kDependent, load_x};
const Kernel kWaitsLoads{kDependent, both(wait, load_x)};
const Kernel kLast{kAfter, load_x};
// On another rank:
const Kernel kLoadsStoresY{kAfter, both(load_x, store_y), {}, 1};
const Kernel kStoresYLoads{kAfter, both(store_y, load_x), {}, 1};

const Counted kCounted[] = {
    {"a kernel after another one", 1, 1, {kStores, kLast}},
    {"MP by the trigger", 2, 2, {kStoresFirst, kThenLoads}},
    {"MP by the wait", 1, 1, {kStores, kWaitsLoads}},
    {"MP by the end, which triggers", 2, 2, {{kAfter, store_x}, kThenLoads}},
    {"LB: a load after the trigger", 2, 2, {kLoads, kThenStores}},
    {"LB: a load before the trigger", 1, 1, {kLoadsFirst, kThenStores}},
    {"CoWW: the trigger", 2, 2, {kStores, {kDependent, store_2}, kLast}},
    {"CoWW: the wait", 1, 1, {kStores, {kDependent, both(wait, store_2)}, kLast}},
    {"a wait for the launch before the one before", 1, 1, {kStores, kTriggersWaits, kWaitsLoads}},
    {"a wait behind a dependent that never waits", 1, 1, {kStores, kTriggers, kWaitsLoads}},
    {"a kernel behind a dependent that never waits", 1, 1, {kStores, kTriggers, kLast}},
    {"two dependents that never wait", 2, 2, {kStores, kTriggers, kThenLoads}},
    {"at most two kernels are alive", 1, 1, {kLoads, kTriggers, kThenStores}},
    {"one block of two has triggered",
     1,
     1,
     {{kAfter, by_blocks(trigger, load_x), kTwoBlocks}, kThenStores}},
    {"both blocks have triggered",
     2,
     2,
     {{kAfter, both(trigger, by_blocks(nothing, load_x)), kTwoBlocks}, kThenStores}},
    // Thread 0 triggers, or the end of the block.
    {"one thread of a block has triggered",
     3,
     2,
     {{kAfter, by_threads(trigger, load_x), kTwoThreads}, kThenStores}},
    {"either thread of a block triggers first",
     4,
     3,
     {{kAfter, both(load_x, trigger), kTwoThreads}, kThenStores}},
    {"a thread that waits, and a sync with another one",
     1,
     1,
     {kStores, {kDependent, both(by_threads(wait, nothing), sync, load_x), kTwoThreads}}},
    {"one thread of a block does not wait",
     2,
     2,
     {kStores, {kDependent, by_threads(wait, load_x), kTwoThreads}}},
    {"a dependent ends the wait of the kernel before",
     1,
     1,
     {{kAfter, both(trigger, await_x)}, kThenStores}},
    {"a trigger that another rank causes, after its load",
     1,
     1,
     {kLoadsStoresY, {kAfter, both(await_y, trigger)}, kThenStores}},
    {"a trigger that another rank causes, before its load",
     2,
     2,
     {kStoresYLoads, {kAfter, both(await_y, trigger)}, kThenStores}},
    {"an end that another rank causes, two kernels before",
     2,
     2,
     {kStoresYLoads, {kAfter, both(trigger, await_y)}, kTriggers, kThenStores}},
};

/// `at_end` is called when all threads have ended.
void add(Scene& scene, const Kernels& kernels, const std::function<void()>& at_end) {
    r = {};
    x = scene.zeroed<Word>(1, "x");
    y = scene.zeroed<Word>(1, "y");
    data = scene.zeroed<int>(1, "data");
    const auto left = std::make_shared<unsigned>(0);
    for (const Kernel& kernel : kernels) {
        *left += kernel.shape.blocks.x * kernel.shape.threads.x;
        const auto body = [=](const Block& block) {
            kernel.body(block);
            unseen([&] {
                if (--*left == 0) {
                    at_end();
                }
            });
        };
        scene.launch(kernel.rank, kernel.shape, body, kernel.order);
    }
}

bool is_counted_right(const Counted& test) {
    std::set<std::array<int, 2>> outcomes;
    const auto reports = explore_each_way(
        {}, [&](Scene& scene) { add(scene, test.kernels, [&] { outcomes.insert(r); }); });
    bool right = outcomes.size() == test.outcomes && reports.back().executions == test.executions;
    for (const Report& report : reports) {
        right = right && report.exhausted && report.graphs.size() == test.executions &&
                report.graphs == reports.front().graphs;
    }
    if (!right) {
        fmt::print("{}: expected {} executions and {} outcomes, not {} and {} {}\n", test.test,
                   test.executions, test.outcomes, reports.back().executions, outcomes.size(),
                   reports.back().why);
    }
    return right;
}

struct Reported {
    const char* test;
    const char* report;  ///< A regular expression: of the counterexample, or of the executions.
    Kernels kernels;
    Options options = {};
};

/// On another rank: loads data, which x publishes.
const Kernel kReader{kAfter,
                     [](const Block& block) {
                         await_x(block);
                         if (*data != 1) {
                             fail("wrong data");
                         }
                     },
                     {},
                     1};

const Reported kReported[] = {
    {"plain stores, ordered by the trigger",
     "data race on data: plain store by r0.b0.t0 .*, plain store by r0.b1.t0",
     {{kAfter, both(store_data, trigger)}, {kDependent, store_data}}},
    {"plain stores, ordered by the wait",
     "^1 executions",
     {{kAfter, both(trigger, store_data)}, {kDependent, both(wait, store_data)}}},
    {"a wait for a kernel that cannot start yet",
     "no thread can go on: r0.b0.t0 polls x = 0x0$",
     {{kAfter, both(await_x, trigger)}, kThenStores}},
    {"what the kernel before did is published after the wait",
     "^1 executions",
     {{kAfter, store_data}, {kDependent, both(wait, store_x)}, kReader}},
    {"the same, where the end of a kernel is no fence",
     "data race on data",
     {{kAfter, store_data}, {kDependent, both(wait, store_x)}, kReader},
     {.kernel_end = KernelEnd::kNothing}},
    {"the end of a kernel acquires what that has loaded",
     "^1 executions",
     {{kAfter, [](const Block&) { *data = 1, x->store(1, release); }, {}, 1},
      {kAfter, await_x_relaxed},
      {kDependent, both(wait, store_data)}}},
    {"the same, where it is no fence",
     "data race on data",
     {{kAfter, [](const Block&) { *data = 1, x->store(1, release); }, {}, 1},
      {kAfter, await_x_relaxed},
      {kDependent, both(wait, store_data)}},
     {.kernel_end = KernelEnd::kNothing}},
    {"what a dependent did before its wait is not published after it",
     "data race on data",
     {{kAfter, trigger}, {kDependent, both(store_data, wait, store_x)}, kReader}},
    {"the end of a kernel in a stream",
     "a launch of a stream is one kernel",
     {{kAfter, [](const Block&) { kernel_end(); }}}},
};

bool is_reported_right(const Reported& test) {
    const Report report =
        explore(test.options, [&](Scene& scene) { add(scene, test.kernels, [] {}); });
    return is_as_expected(test.test, test.report, report);
}

}  // namespace
}  // namespace symm::explore

int main() {
    int wrong = 0;
    for (const auto& test : symm::explore::kCounted) {
        wrong += symm::explore::is_counted_right(test) ? 0 : 1;
    }
    for (const auto& test : symm::explore::kReported) {
        wrong += symm::explore::is_reported_right(test) ? 0 : 1;
    }
    fmt::print("{} of {} tests of streams are wrong\n", wrong,
               std::size(symm::explore::kCounted) + std::size(symm::explore::kReported));
    return wrong == 0 ? 0 : 1;
}
