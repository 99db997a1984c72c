// Litmus tests of the memory model: small programs with known numbers of executions (which load
// reads which store, and the order of the stores) and of outcomes (what the loads return), each
// searched with all three reductions. Exit status 0 if all numbers are as expected.

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <memory>
#include <set>
#include <vector>

#include "tools/explore/explore.hpp"

namespace symm::explore {
namespace {

using Word = std::atomic<int>;
constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto release = std::memory_order_release;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto seq_cst = std::memory_order_seq_cst;

std::array<int, 4> r;  // what the loads return

Word *x, *y, *z;  // zero at first
Word* done;       // one for each thread, for tests that check the end

struct Expected {
    const char* test;
    std::size_t executions;
    std::size_t outcomes;
};
struct Litmus {
    Expected expected;
    std::vector<std::function<void()>> bodies;  ///< Each thread runs one.
};

/// Returns when both `done` words are 1: the thread then knows what their writers knew.
void await_both() {
    for (const int i : {0, 1}) {
        await([&] { return done[i].load(acquire) == 1; }, nullptr);
    }
}

void fence(std::memory_order order) {
    std::atomic_thread_fence(order);
}

const Litmus kTests[] = {
    {{"SB: stores before loads", 4, 4},
     {[] { x->store(1, relaxed), r[0] = y->load(relaxed); },
      [] { y->store(1, relaxed), r[1] = x->load(relaxed); }}},
    {{"SB: seq_cst fences, whose order counts", 4, 3},
     {[] { x->store(1, relaxed), fence(seq_cst), r[0] = y->load(relaxed); },
      [] { y->store(1, relaxed), fence(seq_cst), r[1] = x->load(relaxed); }}},
    {{"LB: no value from nowhere", 3, 3},
     {[] { r[0] = y->load(relaxed), x->store(1, relaxed); },
      [] { r[1] = x->load(relaxed), y->store(1, relaxed); }}},
    {{"MP: relaxed", 4, 4},
     {[] { x->store(1, relaxed), y->store(1, relaxed); },
      [] { r[0] = y->load(relaxed), r[1] = x->load(relaxed); }}},
    {{"MP: release, acquire", 3, 3},
     {[] { x->store(1, relaxed), y->store(1, release); },
      [] { r[0] = y->load(acquire), r[1] = x->load(relaxed); }}},
    {{"MP: release, relaxed", 4, 4},
     {[] { x->store(1, relaxed), y->store(1, release); },
      [] { r[0] = y->load(relaxed), r[1] = x->load(relaxed); }}},
    {{"MP: fences", 3, 3},
     {[] { x->store(1, relaxed), fence(release), y->store(1, relaxed); },
      [] { r[0] = y->load(relaxed), fence(acquire), r[1] = x->load(relaxed); }}},
    {{"MP: a swap that fails and acquires", 3, 3},
     {[] { x->store(1, relaxed), y->store(1, release); },
      [] {
          r[0] = 2;
          y->compare_exchange_strong(r[0], 3, relaxed, acquire), r[1] = x->load(relaxed);
      }}},
    {{"MP: a swap that fails and does not acquire", 4, 4},
     {[] { x->store(1, relaxed), y->store(1, release); },
      [] {
          r[0] = 2;
          y->compare_exchange_strong(r[0], 3, acquire, relaxed), r[1] = x->load(relaxed);
      }}},
    {{"CoRR: coherence", 6, 6},
     {[] { x->store(1, relaxed), x->store(2, relaxed); },
      [] { r[0] = x->load(relaxed), r[1] = x->load(relaxed); }}},
    {{"IRIW: relaxed", 16, 16},
     {[] { x->store(1, relaxed); }, [] { y->store(1, relaxed); },
      [] { r[0] = x->load(relaxed), r[1] = y->load(relaxed); },
      [] { r[2] = y->load(relaxed), r[3] = x->load(relaxed); }}},
    {{"IRIW: acquire", 16, 16},
     {[] { x->store(1, release); }, [] { y->store(1, release); },
      [] { r[0] = x->load(acquire), r[1] = y->load(acquire); },
      [] { r[2] = y->load(acquire), r[3] = x->load(acquire); }}},
    {{"2+2W: which stores are last", 4, 4},
     {[] { x->store(1, relaxed), y->store(2, relaxed), done[0].store(1, release); },
      [] { y->store(1, relaxed), x->store(2, relaxed), done[1].store(1, release); },
      [] { await_both(), r[0] = x->load(relaxed), r[1] = y->load(relaxed); }}},
    {{"WRC: relaxed", 8, 8},
     {[] { x->store(1, relaxed); }, [] { r[0] = x->load(relaxed), y->store(1, relaxed); },
      [] { r[1] = y->load(relaxed), r[2] = x->load(relaxed); }}},
    {{"WRC: release, acquire", 7, 7},
     {[] { x->store(1, release); }, [] { r[0] = x->load(acquire), y->store(1, release); },
      [] { r[1] = y->load(acquire), r[2] = x->load(relaxed); }}},
    {{"S: relaxed", 4, 4},
     {[] { x->store(2, relaxed), y->store(1, relaxed), done[0].store(1, release); },
      [] { r[0] = y->load(relaxed), x->store(1, relaxed), done[1].store(1, release); },
      [] { await_both(), r[1] = x->load(relaxed); }}},
    {{"S: release, acquire", 3, 3},
     {[] { x->store(2, relaxed), y->store(1, release), done[0].store(1, release); },
      [] { r[0] = y->load(acquire), x->store(1, relaxed), done[1].store(1, release); },
      [] { await_both(), r[1] = x->load(relaxed); }}},
    {{"R", 4, 4},
     {[] { x->store(1, relaxed), y->store(1, relaxed), done[0].store(1, release); },
      [] { y->store(2, relaxed), r[0] = x->load(relaxed), done[1].store(1, release); },
      [] { await_both(), r[1] = y->load(relaxed); }}},
    {{"ISA2: a chain", 7, 7},
     {[] { x->store(1, relaxed), y->store(1, release); },
      [] { r[0] = y->load(acquire), z->store(1, release); },
      [] { r[1] = z->load(acquire), r[2] = x->load(relaxed); }}},
    {{"seq_cst fences, the second of which releases what the first one knew", 7, 4},
     {[] { x->store(1, relaxed), fence(seq_cst); }, [] { fence(seq_cst), y->store(1, relaxed); },
      [] { r[0] = y->load(acquire), r[1] = x->load(relaxed); }}},
    {{"a release sequence", 6, 3},
     {[] { x->store(1, relaxed), y->store(1, release); }, [] { r[0] = y->fetch_add(2, relaxed); },
      [] {
          r[1] = y->load(acquire) == 3 ? 1 : 0;
          r[2] = r[1] == 1 ? x->load(relaxed) : 0;
      }}},
    {{"3 stores, 1 load", 24, 4},
     {[] { x->store(1, relaxed); }, [] { x->store(2, relaxed); }, [] { x->store(3, relaxed); },
      [] { r[0] = x->load(relaxed); }}},
    {{"2 stores, 2 pairs of loads", 72, 47},
     {[] { x->store(1, relaxed); }, [] { x->store(2, relaxed); },
      [] { r[0] = x->load(relaxed), r[1] = x->load(relaxed); },
      [] { r[2] = x->load(relaxed), r[3] = x->load(relaxed); }}},
    {{"3 additions", 6, 6},
     {[] { r[0] = x->fetch_add(1, relaxed); }, [] { r[1] = x->fetch_add(1, relaxed); },
      [] { r[2] = x->fetch_add(1, relaxed); }}},
    {{"a swap that fails on what another one takes", 4, 4},
     {[] {
          int expected = 0;
          x->compare_exchange_strong(expected, 1, relaxed);
          r[0] = y->load(relaxed);
      },
      [] {
          int expected = 1;
          r[1] = x->compare_exchange_strong(expected, 2, relaxed) ? 1 : 0;
          y->store(1, relaxed);
      }}},
    {{"an addition and a store", 2, 2},
     {[] { r[0] = x->fetch_add(1, relaxed); }, [] { x->store(5, relaxed); }}},
};

/// Whether a test has the expected numbers with each reduction.
bool is_as_it_has_to_be(const Litmus& test) {
    const Expected& expected = test.expected;
    std::set<std::array<int, 4>> outcomes;
    const auto reports = explore_each_way({}, [&](Scene& scene) {
        r = {};
        x = scene.zeroed<Word>(3, "word");
        y = x + 1;
        z = x + 2;
        done = scene.zeroed<Word>(2, "done");
        const auto left = std::make_shared<std::size_t>(test.bodies.size());
        for (std::size_t i = 0; i < test.bodies.size(); ++i) {
            scene.launch(static_cast<int>(i), {}, [&, i, left](const auto&) {
                test.bodies[i]();
                unseen([&] {
                    if (--*left == 0) {
                        outcomes.insert(r);
                    }
                });
            });
        }
    });
    bool right =
        outcomes.size() == expected.outcomes && reports.back().executions == expected.executions;
    for (const Report& report : reports) {
        right = right && report.exhausted && report.graphs.size() == expected.executions &&
                report.graphs == reports.front().graphs;
    }
    if (!right) {
        fmt::print("{}: expected {} executions and {} outcomes, not {}\n", expected.test,
                   expected.executions, expected.outcomes, outcomes.size());
        for (const Report& report : reports) {
            fmt::print("    {} executions, {} different {}\n", report.executions,
                       report.graphs.size(), report.why);
        }
    }
    return right;
}

}  // namespace
}  // namespace symm::explore

int main() {
    int wrong = 0;
    for (const auto& test : symm::explore::kTests) {
        wrong += symm::explore::is_as_it_has_to_be(test) ? 0 : 1;
    }
    fmt::print("{} of {} litmus tests are wrong\n", wrong, std::size(symm::explore::kTests));
    return wrong == 0 ? 0 : 1;
}
