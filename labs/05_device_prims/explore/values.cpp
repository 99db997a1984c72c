// Which values may a load return? Exercises of labs 04 and 05 ask, and every execution answers.
// Without arguments it prints the values. With a name, such as 05.9/30, it shows an execution of
// 05.9 in which the load returns 30, or runs all, and finds none.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/simt/multimem.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/05_device_prims/signal.hpp"
#include "tools/explore/explore.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {
namespace {

using explore::Scene;
using simt::Order;
using Word = std::uint32_t;

constexpr Word kSlots = 2;  ///< Of the FIFOs of lab 04's exercises.

std::array<bool, 64> returned;   ///< What the loads of a scene return: of each value, whether.
std::optional<Word> looked_for;  ///< The execution that returns this is to be shown.

/// Notes what a load of interest has returned. The explorer does not see it: threads share it.
[[clang::no_sanitize("thread")]] void note(Word value) {
    returned[value % returned.size()] = true;
    if (looked_for.has_value() && *looked_for == value) {
        explore::fail(fmt::format("the answer is {} in this execution", value));
    }
}

std::vector<Word> noted() {
    std::vector<Word> values;
    for (Word value = 0; value < returned.size(); ++value) {
        if (returned[value]) {
            values.push_back(value);
        }
    }
    return values;
}

Word load(const Word* at) {
    return simt::load(at, Order::kRelaxed);
}
void store(Word* at, Word value) {
    simt::store(at, value, Order::kRelaxed);
}

/// One thread of a rank, with its waits.
struct Thread {
    void wait(const Word* flag, Word value, Order order = Order::kAcquire) const {
        simt::Waiter waiter(timeout);
        waiter.until({simt::Wait::kSignal, 0, 0, value}, [&](std::uint64_t& seen) {
            seen = simt::load(flag, order);
            return has_reached(static_cast<Word>(seen), value);
        });
    }
    simt::Timeout timeout;
    const simt::ThreadBlock& block;
};

template <class Body>
void launch(Scene& scene, int rank, Body body, unsigned threads = 1) {
    const simt::Timeout timeout = explore::timeout_of(scene, rank);
    scene.launch(rank, {.threads = threads}, [=](const simt::ThreadBlock& block) {
        body(Thread{timeout, block});
    });
}

/// A FIFO of two slots. Its orders are (1) to (4) of fifo.hpp.
struct Fifo {
    Word steps = 4;
    Word observed = 1;  ///< Steps whose loads are of interest.
    bool has_credits = true;
    bool gives_early = false;  ///< The receiver gives a slot back before it loads it.
    bool loads_tail = false;   ///< Instead of the slot.
    std::array<Order, 4> orders{Order::kAcquire, Order::kRelease, Order::kAcquire, Order::kRelease};

    void operator()(Scene& scene) const {
        auto* const slots = scene.zeroed<Word>(kSlots, "slots", 1);
        auto* const head = scene.zeroed<Word>(1, "head", 0);
        auto* const tail = scene.zeroed<Word>(1, "tail", 1);
        launch(scene, 0, [=, *this](const Thread& thread) {
            for (Word s = 0; s < steps; ++s) {
                if (has_credits) {
                    thread.wait(head, s + 1 - kSlots, orders[0]);
                }
                store(&slots[s % kSlots], s + 1);
                simt::store(tail, s + 1, orders[1]);
            }
        });
        launch(scene, 1, [=, *this](const Thread& thread) {
            for (Word s = 0; s < steps; ++s) {
                thread.wait(tail, s + 1, orders[2]);
                if (gives_early) {
                    simt::store(head, s + 1, orders[3]);
                }
                if (s < observed) {
                    note(load(loads_tail ? tail : &slots[s % kSlots]) - s);
                }
                simt::store(head, s + 1, orders[3]);
            }
        });
    }
};

/// Prints which of the four orders may be relaxed where each slot is used once.
void print_needless_orders() {
    std::set<int> needless;
    for (int i = 0; i < 4; ++i) {
        Fifo fifo{.steps = kSlots, .observed = kSlots};
        fifo.orders[i] = Order::kRelaxed;
        returned = {};
        explore::explore({}, fifo);
        if (noted() == std::vector<Word>{1}) {
            needless.insert(i + 1);
        }
    }
    fmt::print("04.4: {}\n", fmt::join(needless, ","));
}

template <Order kPoll>
void three_rounds(Scene& scene) {
    auto* const data = scene.zeroed<Word>(1, "data", 1);
    auto* const flag = scene.zeroed<Word>(1, "flag", 1);
    launch(scene, 0, [=](const Thread&) {
        for (Word round = 1; round <= 3; ++round) {
            store(data, 10 * round);
            signal(flag, round);
        }
    });
    launch(scene, 1, [=](const Thread& thread) {
        thread.wait(flag, 2, kPoll);
        note(load(data));
    });
}

void one_word_twice(Scene& scene) {
    auto* const data = scene.zeroed<Word>(1, "data", 1);
    launch(scene, 0, [=](const Thread&) {
        store(data, 10);
        store(data, 20);
    });
    launch(scene, 1, [=](const Thread&) {
        const Word first = load(data);
        const Word second = load(data);
        if (first == 10) {
            note(second);
        }
    });
}

/// Two threads add up what they have seen; the second one knows the sum.
void add_seen(Word* sum, Word seen) {
    const Word before = simt::fetch_add(sum, 1 + seen, Order::kRelaxed);
    if (before != 0) {
        note(before - 1 + seen);
    }
}

void each_raises_a_flag(Scene& scene) {
    auto* const flags = scene.zeroed<Word>(2, "flags");
    auto* const sum = scene.zeroed<Word>(1, "sum");
    for (const int rank : {0, 1}) {
        launch(scene, rank, [=](const Thread&) {
            simt::store(&flags[rank], Word{1}, Order::kRelease);
            add_seen(sum, simt::load(&flags[1 - rank], Order::kAcquire));
        });
    }
}

void two_observers(Scene& scene) {
    auto* const words = scene.zeroed<Word>(2, "words");
    auto* const sum = scene.zeroed<Word>(1, "sum");
    for (const int rank : {0, 1}) {
        launch(scene, rank,
               [=](const Thread&) { simt::store(&words[rank], Word{1}, Order::kRelease); });
        launch(scene, 2 + rank, [=](const Thread&) {
            const Word first = simt::load(&words[rank], Order::kAcquire);
            const Word other = simt::load(&words[1 - rank], Order::kAcquire);
            add_seen(sum, first == 1 && other == 0 ? 1 : 0);
        });
    }
}

void after_a_barrier(Scene& scene) {
    const auto memory = explore::symmetric_zeroed<BarrierMemory>(scene, 2, "barrier");
    auto* const boxes = scene.zeroed<Word>(2, "boxes");
    for (const int rank : {0, 1}) {
        launch(scene, rank, [=, view = BarrierView{memory, rank, 2}](const Thread& thread) {
            Barrier barrier(thread.block, view, thread.timeout);
            for (Word round = 1; round <= 3; ++round) {
                store(&boxes[1 - rank], round);
                barrier.arrive_and_wait();
                if (const Word seen = load(&boxes[rank]); round == 1) {
                    note(seen);
                }
            }
        });
    }
}

void through_a_third_rank(Scene& scene) {
    auto* const data = scene.zeroed<Word>(1, "data", 2);
    auto* const flags = scene.zeroed<Word>(2, "flags");
    launch(scene, 0, [=](const Thread&) {
        store(data, 10);
        signal(&flags[0], 1);
        store(data, 20);
    });
    launch(scene, 1, [=](const Thread& thread) {
        thread.wait(&flags[0], 1);
        signal(&flags[1], 1);
    });
    launch(scene, 2, [=](const Thread& thread) {
        thread.wait(&flags[1], 1);
        note(load(data));
    });
}

void by_another_thread(Scene& scene) {
    auto* const data = scene.zeroed<Word>(1, "data", 1);
    auto* const flags = scene.zeroed<Word>(2, "flags", 1);
    launch(scene, 0, [=](const Thread&) {
        store(data, 10);
        signal(&flags[0], 1);
    });
    launch(
        scene, 1,
        [=](const Thread& thread) {
            const unsigned t = thread.block.thread_rank();
            thread.wait(&flags[t], 1);
            if (t == 0) {
                store(&flags[1], 1);
            } else {
                note(load(data));
            }
        },
        2);
}

/// A pack of each rank, behind one multicast address.
struct Packs {
    using Pack = simt::Pack16;
    explicit Packs(Scene& scene) {
        own = {scene.zeroed<Pack>(1, "data", 0), scene.zeroed<Pack>(1, "data", 1)};
        all = scene.multicast<Pack>({own[0], own[1]}, 1, "all data");
    }
    void store(const Thread& thread, Word value) const {
        simt::store_to_all(thread.block, all, {{value, 0}});
    }
    std::array<Pack*, 2> own;
    Pack* all;
};

void half_of_a_store(Scene& scene) {
    const Packs packs(scene);
    launch(scene, 0, [=](const Thread& thread) {
        packs.store(thread, 10);
        packs.store(thread, 20);
    });
    launch(scene, 1, [=](const Thread& thread) {
        using simt::SwitchOp;
        const auto sum = simt::load_reduce<std::uint64_t, SwitchOp::kAdd>(thread.block, packs.all);
        note(static_cast<Word>(sum.half[0]));
    });
}

// Both store, then both look; rank 1 tells what both have found.
void two_store_to_all(Scene& scene) {
    const Packs packs(scene);
    auto* const flags = scene.zeroed<Word>(2, "flags");
    auto* const found = scene.zeroed<Word>(1, "found", 1);
    for (int rank = 0; rank < 2; ++rank) {
        launch(scene, rank, [=](const Thread& thread) {
            packs.store(thread, static_cast<Word>(rank + 1));
            simt::fence_alias();
            signal(&flags[rank], 1);
            thread.wait(&flags[1 - rank], 1);
            simt::fence_alias();
            const auto own = static_cast<Word>(simt::load_relaxed(packs.own[rank]).half[0]);
            if (rank == 0) {
                store(found, own);
                signal(&flags[0], 2);
            } else {
                thread.wait(&flags[0], 2);
                note(10 * load(found) + own);
            }
        });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    struct Question {
        std::string exercise;
        std::function<void(Scene&)> scene;
        std::vector<Word> values;  ///< That somebody may think of.
    };
    const std::vector<Question> questions{
        {"04.9", Fifo{.steps = 5, .has_credits = false}, {0, 1, 2, 3, 4, 5}},
        {"04.10", Fifo{.gives_early = true}, {0, 1, 2, 3, 4}},
        {"04.11", Fifo{.loads_tail = true}, {0, 1, 2, 3, 4}},
        {"05.9", three_rounds<Order::kAcquire>, {0, 10, 20, 30}},
        {"05.10", three_rounds<Order::kRelaxed>, {0, 10, 20, 30}},
        {"05.11", one_word_twice, {0, 10, 20}},
        {"05.12", each_raises_a_flag, {0, 1, 2}},
        {"05.13", after_a_barrier, {0, 1, 2, 3}},
        {"05.14", through_a_third_rank, {0, 10, 20}},
        {"05.15", by_another_thread, {0, 1, 10}},
        {"05.16", two_observers, {0, 1, 2}},
        {"05.19", half_of_a_store, {0, 10, 20, 30, 40}},
        {"05.20", two_store_to_all, {0, 10, 11, 12, 20, 21, 22}},
    };
    if (argc > 1) {
        std::vector<explore::Protocol> protocols;
        for (const Question& question : questions) {
            for (const Word value : question.values) {
                protocols.push_back({fmt::format("{}/{}", question.exercise, value),
                                     [&, value](Scene& scene) {
                                         looked_for = value;
                                         question.scene(scene);
                                     },
                                     false});
            }
        }
        return explore::explore_main(argc, argv, protocols);
    }
    print_needless_orders();
    bool all_done = true;
    for (const auto& [exercise, scene, values] : questions) {
        returned = {};
        const explore::Report report = explore::explore({}, scene);
        fmt::print("{}: {} in {} executions {}\n", exercise, fmt::join(noted(), ","),
                   report.executions, report.why);
        all_done = all_done && report.exhausted && !report.failed;
    }
    fmt::print("{}\n", all_done ? "Every execution ran." : "A search failed, or was stopped.");
    return all_done ? 0 : 1;
}
