// Random small programs of loads, stores, additions, exchanges, compare-and-swaps and fences. The
// three searches must visit the same executions, as many as there are by RC11's axioms. Exit status
// 0 if they do.
//
//     explore_programs [PROGRAMS [SEED]]

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tools/explore/explore.hpp"

namespace symm::explore {
namespace {

enum class Kind { kLoad, kStore, kAdd, kExchange, kFence, kSwap };
constexpr std::size_t kWords = 2;

struct Op {
    std::size_t thread;
    Kind kind;
    std::size_t word;
    int value;     ///< Stored, added, or swapped in.
    int expected;  ///< By kSwap.
    std::memory_order order;
    std::memory_order failure;  ///< Used by kSwap.

    bool reads() const { return kind != Kind::kStore && kind != Kind::kFence; }
};
using Program = std::vector<Op>;  ///< Each thread's operations are in its order.

bool acquires(std::memory_order order) {
    return order == std::memory_order_acquire || order == std::memory_order_acq_rel;
}
bool releases(std::memory_order order) {
    return order == std::memory_order_release || order == std::memory_order_acq_rel;
}

/// The executions of a program: which write each read takes its value from, and the order of each
/// word's writes. Write 0 is the initial value of each word, write i + 1 that of operation i.
class Executions {
public:
    explicit Executions(const Program& program)
        : program_(program), from_(program.size()), place_(program.size() + 1) {
        choose_reads(0);
    }
    std::size_t count() const { return count_; }

private:
    static constexpr std::size_t kInitial = 0;

    void choose_reads(std::size_t i) {
        if (i == program_.size()) {
            evaluate();
        } else if (!program_[i].reads()) {
            choose_reads(i + 1);
        } else {
            for (std::size_t write = 0; write <= program_.size(); ++write) {
                if (write == kInitial || program_[write - 1].word == program_[i].word) {
                    from_[i] = write;
                    choose_reads(i + 1);
                }
            }
        }
    }

    // Computes all values, and what happens before each operation. Returns where a value would come
    // from nowhere.
    void evaluate() {
        std::vector<int> values(program_.size() + 1);
        std::vector<bool> done(program_.size() + 1);
        std::vector<std::uint32_t> released(program_.size() + 1);
        done[kInitial] = true;
        writes_.assign(kWords, {});
        before_.assign(program_.size(), 0);
        for (std::size_t left = program_.size(); left > 0;) {
            const std::size_t left_before = left;
            for (std::size_t i = 0; i < program_.size(); ++i) {
                const Op& op = program_[i];
                std::uint32_t before = 0;
                std::uint32_t fenced = 0;      // what a relaxed store releases
                std::uint32_t acquirable = 0;  // what an acquire fence adds
                bool ready = !done[i + 1] && (!op.reads() || done[from_[i]]);
                for (std::size_t k = 0; k < i; ++k) {
                    if (program_[k].thread == op.thread) {
                        ready = ready && done[k + 1];
                        before |= before_[k] | 1U << k;
                        acquirable |= program_[k].reads() ? released[from_[k]] : 0;
                        if (program_[k].kind == Kind::kFence && releases(program_[k].order)) {
                            fenced = before;
                        }
                    }
                }
                if (!ready) {
                    continue;
                }
                done[i + 1] = true;
                --left;
                const int old = op.reads() ? values[from_[i]] : 0;
                const bool fails = op.kind == Kind::kSwap && old != op.expected;
                if (op.reads() && acquires(fails ? op.failure : op.order)) {
                    before |= released[from_[i]];
                }
                if (op.kind == Kind::kFence && acquires(op.order)) {
                    before |= acquirable;
                }
                before_[i] = before;
                if (fails || op.kind == Kind::kLoad || op.kind == Kind::kFence) {
                    continue;
                }
                values[i + 1] = op.value + (op.kind == Kind::kAdd ? old : 0);
                released[i + 1] = (releases(op.order) ? before | 1U << i : fenced) |
                                  (op.reads() ? released[from_[i]] : 0);
                writes_[op.word].push_back(i);
            }
            if (left == left_before) {
                return;
            }
        }
        for (std::size_t i = 0; i < program_.size(); ++i) {
            if (program_[i].reads() && from_[i] != kInitial && !is_write(from_[i] - 1)) {
                return;  // from a swap that failed
            }
        }
        order_writes(0);
    }

    bool is_write(std::size_t i) const {
        return program_[i].word < kWords && std::ranges::count(writes_[program_[i].word], i) != 0;
    }

    void order_writes(std::size_t word) {
        if (word == writes_.size()) {
            count_ += is_coherent() ? 1 : 0;
            return;
        }
        std::vector<std::size_t> order = writes_[word];
        std::ranges::sort(order);
        do {
            for (std::size_t i = 0; i < order.size(); ++i) {
                place_[order[i] + 1] = i + 1;
            }
            order_writes(word + 1);
        } while (std::ranges::next_permutation(order).found);
    }

    bool is_coherent() const {
        for (std::size_t i = 0; i < program_.size(); ++i) {
            if (program_[i].kind == Kind::kFence) {
                continue;
            }
            if (program_[i].reads() && is_write(i) && place_[i + 1] != place_[from_[i]] + 1) {
                return false;
            }
            for (std::size_t k = 0; k < program_.size(); ++k) {
                if ((before_[i] >> k & 1) == 0 || program_[k].word != program_[i].word) {
                    continue;
                }
                const std::size_t known = place_[is_write(k) ? k + 1 : from_[k]];
                if (program_[i].reads() ? place_[from_[i]] < known : place_[i + 1] <= known) {
                    return false;
                }
            }
        }
        return true;
    }

    const Program& program_;
    std::vector<std::size_t> from_;                 ///< The write that an operation reads.
    std::vector<std::size_t> place_;                ///< Where a write stands among its word's.
    std::vector<std::vector<std::size_t>> writes_;  ///< Operations that write to each word.
    std::vector<std::uint32_t> before_;             ///< Bits: the operations before each.
    std::size_t count_ = 0;
};

Program random_program(std::mt19937& random) {
    static constexpr std::memory_order kLoads[] = {std::memory_order_relaxed,
                                                   std::memory_order_acquire};
    static constexpr std::memory_order kStores[] = {std::memory_order_relaxed,
                                                    std::memory_order_release};
    static constexpr std::memory_order kUpdates[] = {
        std::memory_order_relaxed, std::memory_order_acquire, std::memory_order_release,
        std::memory_order_acq_rel};
    Program program;
    const std::size_t threads = 2 + random() % 2;
    for (std::size_t left = threads + random() % 3; left > 0; --left) {
        Op op{left % threads,
              static_cast<Kind>(std::min(random() % 9, std::mt19937::result_type{5})),
              random() % kWords,
              random() % 2 == 0 ? 1 : -1,
              static_cast<int>(random() % 3) - 1,
              {},
              kLoads[random() % 2]};
        op.order = op.kind == Kind::kLoad    ? kLoads[random() % 2]
                   : op.kind == Kind::kStore ? kStores[random() % 2]
                   : op.kind == Kind::kFence ? kUpdates[1 + random() % 3]
                                             : kUpdates[random() % 4];
        op.word = op.kind == Kind::kFence ? kWords : op.word;
        program.push_back(op);
    }
    return program;
}

std::string text(const Program& program) {
    std::string text;
    for (const Op& op : program) {
        static constexpr const char* kKinds[] = {"load",     "store", "add",
                                                 "exchange", "fence", "swap"};
        text += fmt::format("  thread {}: {} word {}, value {}, expected {}, orders {} and {}\n",
                            op.thread, kKinds[static_cast<int>(op.kind)], op.word, op.value,
                            op.expected, static_cast<int>(op.order), static_cast<int>(op.failure));
    }
    return text;
}

void run(const Op& op, std::atomic<int>& word) {
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
    }
}

bool are_all_visited(const Program& program) {
    const std::size_t expected = Executions(program).count();
    const auto reports = explore_each_way({}, [&](Scene& scene) {
        auto* const words = scene.allocate<std::atomic<int>>(kWords + 1, "word");
        for (std::size_t thread = 0; thread < 3; ++thread) {
            scene.launch(static_cast<int>(thread), {}, [&, words, thread](const auto&) {
                for (const Op& op : program) {
                    if (op.thread == thread) {
                        run(op, words[op.word]);
                    }
                }
            });
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
    const int programs = argc > 1 ? std::stoi(argv[1]) : 3000;
    std::mt19937 random(argc > 2 ? std::stoul(argv[2]) : 1);
    int wrong = 0;
    for (int i = 0; i < programs; ++i) {
        wrong += symm::explore::are_all_visited(symm::explore::random_program(random)) ? 0 : 1;
    }
    fmt::print("{} of {} programs are wrong\n", wrong, programs);
    return wrong == 0 ? 0 : 1;
}
