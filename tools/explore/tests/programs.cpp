// Random small programs of loads, stores, additions, exchanges, compare-and-swaps and fences. In
// every third one, threads are kernels of a stream, with triggers and waits. The three searches
// must visit the same executions, as many as there are by RC11's axioms (axioms.hpp). Exit status 0
// if they do.
//
//     explore_programs [PROGRAMS [SEED]]

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <random>
#include <string>

#include "tools/explore/explore.hpp"
#include "tools/explore/tests/axioms.hpp"

namespace symm::explore {
namespace {

Program random_program(std::mt19937& random, bool with_stream) {
    static constexpr std::memory_order kLoads[] = {std::memory_order_relaxed,
                                                   std::memory_order_acquire};
    static constexpr std::memory_order kStores[] = {std::memory_order_relaxed,
                                                    std::memory_order_release};
    static constexpr std::memory_order kUpdates[] = {
        std::memory_order_relaxed, std::memory_order_acquire, std::memory_order_release,
        std::memory_order_acq_rel};
    Program program;
    const std::size_t threads = 2 + random() % 2;
    if (with_stream) {
        program.kernels = 2 + random() % (threads - 1);
        program.end_is_fence = random() % 2 == 0;
        std::ranges::generate(program.is_dependent, [&] { return random() % 4 != 0; });
    }
    for (std::size_t left = threads + random() % 3 + (with_stream ? 3 : 0); left > 0; --left) {
        const auto kind = random() % 9;
        Op op{left % threads,
              with_stream && random() % 3 == 0 ? (kind % 2 == 0 ? Kind::kTrigger : Kind::kWait)
                                               : static_cast<Kind>(std::min<std::size_t>(kind, 5)),
              random() % kWords,
              random() % 2 == 0 ? 1 : -1,
              static_cast<int>(random() % 3) - 1,
              {},
              kLoads[random() % 2]};
        op.order = op.kind == Kind::kLoad    ? kLoads[random() % 2]
                   : op.kind == Kind::kStore ? kStores[random() % 2]
                   : op.kind == Kind::kFence ? kUpdates[1 + random() % 3]
                                             : kUpdates[random() % 4];
        op.word = op.accesses() ? op.word : kWords;
        program.push_back(op);
    }
    return program;
}

std::string text(const Program& program) {
    std::string text =
        fmt::format("  {} kernels, dependent: {} {} {}, ends are fences: {}\n", program.kernels,
                    program.is_dependent[0], program.is_dependent[1], program.is_dependent[2],
                    program.end_is_fence);
    for (const Op& op : program) {
        static constexpr const char* kKinds[] = {"load",  "store", "add",     "exchange",
                                                 "fence", "swap",  "trigger", "wait"};
        text += fmt::format("  thread {}: {} word {}, value {}, expected {}, orders {} and {}\n",
                            op.thread, kKinds[static_cast<int>(op.kind)], op.word, op.value,
                            op.expected, static_cast<int>(op.order), static_cast<int>(op.failure));
    }
    return text;
}

void run(const Op& op, std::atomic<int>& word, const simt::ThreadBlock& block) {
    int expected = op.expected;
    switch (op.kind) {
        case Kind::kLoad:
            word.load(op.order);
            break;
        case Kind::kStore:
            word.store(op.value, op.order);
            break;
        case Kind::kAdd:
            word.fetch_add(op.value, op.order);
            break;
        case Kind::kExchange: {
            const int old = word.exchange(op.value, op.order);
            asm volatile("" : : "r"(old));  // else clang makes it a store
            break;
        }
        case Kind::kFence:
            std::atomic_thread_fence(op.order);
            break;
        case Kind::kSwap:
            word.compare_exchange_strong(expected, op.value, op.order, op.failure);
            break;
        case Kind::kTrigger:
            block.launch_dependents();
            break;
        case Kind::kWait:
            block.wait_for_predecessor();
            break;
    }
}

bool are_all_visited(const Program& program) {
    const std::size_t expected = Executions(program).count();
    Options options;
    options.kernel_end = program.end_is_fence ? KernelEnd::kFence : KernelEnd::kNothing;
    const auto reports = explore_each_way(options, [&](Scene& scene) {
        auto* const words = scene.zeroed<std::atomic<int>>(kWords + 1, "word");
        for (std::size_t thread = 0; thread < kThreads; ++thread) {
            const auto body = [&, words, thread](const simt::ThreadBlock& block) {
                for (const Op& op : program) {
                    if (op.thread == thread) {
                        run(op, words[op.word], block);
                    }
                }
            };
            if (thread < program.kernels) {
                scene.launch(
                    0, {}, body,
                    program.is_dependent[thread] ? LaunchOrder::kDependent : LaunchOrder::kAfter);
            } else {
                scene.launch(1, {}, body);
            }
        }
    });
    for (const Report& report : reports) {
        const bool is_reduced = &report != &reports.front();
        if (!report.exhausted || report.graphs.size() != expected ||
            (is_reduced && report.executions != expected)) {
            fmt::print("reduction {}: {} executions, {} different; expected {} {}\n{}",
                       &report - reports.data(), report.executions, report.graphs.size(), expected,
                       report.why, text(program));
            return false;
        }
    }
    return true;
}

}  // namespace
}  // namespace symm::explore

int main(int argc, char** argv) {
    const auto number = [=](int i, int otherwise) {
        if (argc > i) {
            std::from_chars(argv[i], argv[i] + std::strlen(argv[i]), otherwise);
        }
        return otherwise;
    };
    const int programs = number(1, 3000);
    std::mt19937 random(static_cast<unsigned>(number(2, 1)));
    int wrong = 0;
    for (int i = 0; i < programs; ++i) {
        wrong += symm::explore::are_all_visited(symm::explore::random_program(random, i % 3 == 0))
                     ? 0
                     : 1;
    }
    fmt::print("{} of {} programs are wrong\n", wrong, programs);
    return wrong == 0 ? 0 : 1;
}
