// Litmus tests of the memory model: small programs with known numbers of executions (which load
// reads which store, and the order of the stores) and of outcomes (what the loads return), each
// searched with all three reductions. Exit status 0 if all numbers are as expected.

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/explore/explore.hpp"

namespace symm::explore {
namespace {

using Word = std::atomic<int>;
using Bodies = std::vector<std::function<void()>>;
constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto release = std::memory_order_release;
constexpr auto acquire = std::memory_order_acquire;

std::array<int, 4> r;  // what the loads return

/// The words of a test, zeroed.
struct Words {
    Word& x;
    Word& y;
    Word& z;
    Word* done;  ///< One for each thread, for tests that check the end.
};

struct Litmus {
    const char* name;
    std::size_t executions;
    std::size_t outcomes;
    std::function<Bodies(const Words&)> bodies;
};

/// Returns when all `done` words are 1: the thread then knows what their writers knew.
void await_all(Word* done, int count) {
    for (int i = 0; i < count; ++i) {
        const auto is_set = [&] { return done[i].load(acquire) == 1; };
        await(is_set, nullptr);
    }
}

const Litmus kTests[] = {
    {"SB: stores before loads", 4, 4,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed), r[0] = w.y.load(relaxed); },
                 [=] { w.y.store(1, relaxed), r[1] = w.x.load(relaxed); }};
     }},
    {"LB: no value from nowhere", 3, 3,
     [](const Words& w) -> Bodies {
         return {[=] { r[0] = w.y.load(relaxed), w.x.store(1, relaxed); },
                 [=] { r[1] = w.x.load(relaxed), w.y.store(1, relaxed); }};
     }},
    {"MP: relaxed", 4, 4,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed), w.y.store(1, relaxed); },
                 [=] { r[0] = w.y.load(relaxed), r[1] = w.x.load(relaxed); }};
     }},
    {"MP: release, acquire", 3, 3,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed), w.y.store(1, release); },
                 [=] { r[0] = w.y.load(acquire), r[1] = w.x.load(relaxed); }};
     }},
    {"MP: release, relaxed", 4, 4,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed), w.y.store(1, release); },
                 [=] { r[0] = w.y.load(relaxed), r[1] = w.x.load(relaxed); }};
     }},
    {"MP: fences", 3, 3,
     [](const Words& w) -> Bodies {
         return {[=] {
                     w.x.store(1, relaxed);
                     std::atomic_thread_fence(release);
                     w.y.store(1, relaxed);
                 },
                 [=] {
                     r[0] = w.y.load(relaxed);
                     std::atomic_thread_fence(acquire);
                     r[1] = w.x.load(relaxed);
                 }};
     }},
    {"CoRR: coherence", 6, 6,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed), w.x.store(2, relaxed); },
                 [=] { r[0] = w.x.load(relaxed), r[1] = w.x.load(relaxed); }};
     }},
    {"IRIW: relaxed", 16, 16,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed); }, [=] { w.y.store(1, relaxed); },
                 [=] { r[0] = w.x.load(relaxed), r[1] = w.y.load(relaxed); },
                 [=] { r[2] = w.y.load(relaxed), r[3] = w.x.load(relaxed); }};
     }},
    {"IRIW: acquire", 16, 16,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, release); }, [=] { w.y.store(1, release); },
                 [=] { r[0] = w.x.load(acquire), r[1] = w.y.load(acquire); },
                 [=] { r[2] = w.y.load(acquire), r[3] = w.x.load(acquire); }};
     }},
    {"2+2W: which stores are last", 4, 4,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed), w.y.store(2, relaxed), w.done[0].store(1, release); },
                 [=] { w.y.store(1, relaxed), w.x.store(2, relaxed), w.done[1].store(1, release); },
                 [=] {
                     await_all(w.done, 2);
                     r[0] = w.x.load(relaxed), r[1] = w.y.load(relaxed);
                 }};
     }},
    {"WRC: relaxed", 8, 8,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed); },
                 [=] { r[0] = w.x.load(relaxed), w.y.store(1, relaxed); },
                 [=] { r[1] = w.y.load(relaxed), r[2] = w.x.load(relaxed); }};
     }},
    {"WRC: release, acquire", 7, 7,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, release); },
                 [=] { r[0] = w.x.load(acquire), w.y.store(1, release); },
                 [=] { r[1] = w.y.load(acquire), r[2] = w.x.load(relaxed); }};
     }},
    {"S: relaxed", 4, 4,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(2, relaxed), w.y.store(1, relaxed), w.done[0].store(1, release); },
                 [=] {
                     r[0] = w.y.load(relaxed);
                     w.x.store(1, relaxed), w.done[1].store(1, release);
                 },
                 [=] {
                     await_all(w.done, 2);
                     r[1] = w.x.load(relaxed);
                 }};
     }},
    {"S: release, acquire", 3, 3,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(2, relaxed), w.y.store(1, release), w.done[0].store(1, release); },
                 [=] {
                     r[0] = w.y.load(acquire);
                     w.x.store(1, relaxed), w.done[1].store(1, release);
                 },
                 [=] {
                     await_all(w.done, 2);
                     r[1] = w.x.load(relaxed);
                 }};
     }},
    {"R", 4, 4,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed), w.y.store(1, relaxed), w.done[0].store(1, release); },
                 [=] {
                     w.y.store(2, relaxed);
                     r[0] = w.x.load(relaxed), w.done[1].store(1, release);
                 },
                 [=] {
                     await_all(w.done, 2);
                     r[1] = w.y.load(relaxed);
                 }};
     }},
    {"ISA2: a chain", 7, 7,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed), w.y.store(1, release); },
                 [=] { r[0] = w.y.load(acquire), w.z.store(1, release); },
                 [=] { r[1] = w.z.load(acquire), r[2] = w.x.load(relaxed); }};
     }},
    {"a release sequence", 6, 3,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed), w.y.store(1, release); },
                 [=] { r[0] = w.y.fetch_add(2, relaxed); },
                 [=] {
                     r[1] = w.y.load(acquire) == 3 ? 1 : 0;
                     r[2] = r[1] == 1 ? w.x.load(relaxed) : 0;
                 }};
     }},
    {"3 stores, 1 load", 24, 4,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed); }, [=] { w.x.store(2, relaxed); },
                 [=] { w.x.store(3, relaxed); }, [=] { r[0] = w.x.load(relaxed); }};
     }},
    {"2 stores, 2 pairs of loads", 72, 47,
     [](const Words& w) -> Bodies {
         return {[=] { w.x.store(1, relaxed); }, [=] { w.x.store(2, relaxed); },
                 [=] { r[0] = w.x.load(relaxed), r[1] = w.x.load(relaxed); },
                 [=] { r[2] = w.x.load(relaxed), r[3] = w.x.load(relaxed); }};
     }},
    {"3 additions", 6, 6,
     [](const Words& w) -> Bodies {
         return {[=] { r[0] = w.x.fetch_add(1, relaxed); },
                 [=] { r[1] = w.x.fetch_add(1, relaxed); },
                 [=] { r[2] = w.x.fetch_add(1, relaxed); }};
     }},
    {"a swap that fails on what another one takes", 4, 4,
     [](const Words& w) -> Bodies {
         return {[=] {
                     int expected = 0;
                     w.x.compare_exchange_strong(expected, 1, relaxed);
                     r[0] = w.y.load(relaxed);
                 },
                 [=] {
                     int expected = 1;
                     r[1] = w.x.compare_exchange_strong(expected, 2, relaxed) ? 1 : 0;
                     w.y.store(1, relaxed);
                 }};
     }},
    {"an addition and a store", 2, 2,
     [](const Words& w) -> Bodies {
         return {[=] { r[0] = w.x.fetch_add(1, relaxed); }, [=] { w.x.store(5, relaxed); }};
     }},
};

/// Whether a test has the expected numbers with each reduction.
bool is_as_it_has_to_be(const Litmus& test) {
    std::set<std::array<int, 4>> outcomes;
    const auto reports = explore_each_way({}, [&](Scene& scene) {
        r = {};
        auto* const words = scene.allocate<Word>(3, "word");
        auto* const done = scene.allocate<Word>(2, "done");
        const Bodies bodies = test.bodies({words[0], words[1], words[2], done});
        const auto left = std::make_shared<std::size_t>(bodies.size());
        for (std::size_t i = 0; i < bodies.size(); ++i) {
            scene.launch(static_cast<int>(i), {}, [body = bodies[i], left, &outcomes](const auto&) {
                body();
                if (--*left == 0) {
                    outcomes.insert(r);
                }
            });
        }
    });
    bool right = outcomes.size() == test.outcomes && reports.back().executions == test.executions;
    for (const Report& report : reports) {
        right = right && report.exhausted && report.graphs.size() == test.executions &&
                report.graphs == reports.front().graphs;
    }
    if (!right) {
        fmt::print("{}: expected {} executions and {} outcomes, not {}\n", test.name,
                   test.executions, test.outcomes, outcomes.size());
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
