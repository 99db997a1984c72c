#pragma once
/// \file
/// Counts the executions of a small program by RC11's axioms, trying all reads and all orders of
/// writes: what the explorer's searches have to visit. Some threads may be the kernels of a stream
/// (streams.hpp).

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace symm::explore {

enum class Kind { kLoad, kStore, kAdd, kExchange, kFence, kSwap, kTrigger, kWait };
constexpr std::size_t kWords = 2;
constexpr std::size_t kThreads = 3;

struct Op {
    std::size_t thread;
    Kind kind;
    std::size_t word;
    int value;     ///< Stored, added, or swapped in.
    int expected;  ///< By kSwap.
    std::memory_order order;
    std::memory_order failure;  ///< Used by kSwap.

    bool reads() const { return accesses() && kind != Kind::kStore; }
    bool accesses() const { return kind < Kind::kFence || kind == Kind::kSwap; }
};
struct Program : std::vector<Op> {  ///< Each thread's operations are in its order.
    /// The first threads are the kernels of a stream. 0: there is none.
    std::size_t kernels = 0;
    std::array<bool, kThreads> is_dependent{};
    bool end_is_fence = true;  ///< KernelEnd::kFence.
};

inline bool does_acquire(std::memory_order order) {
    return order == std::memory_order_acquire || order == std::memory_order_acq_rel;
}
inline bool does_release(std::memory_order order) {
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
                bool ready = !done[i + 1] && (!op.reads() || done[from_[i]]) &&
                             (op.kind == Kind::kWait ? have_ended(op.thread, done)
                                                     : may_start(op.thread, done));
                if (is_in_stream(op.thread) && !program_.is_dependent[op.thread]) {
                    learn(op.thread, released, before, fenced);
                }
                for (std::size_t k = 0; k < i; ++k) {
                    if (program_[k].thread == op.thread) {
                        ready = ready && done[k + 1];
                        before |= before_[k] | 1U << k;
                        acquirable |= program_[k].reads() ? released[from_[k]] : 0;
                        if (program_[k].kind == Kind::kFence && does_release(program_[k].order)) {
                            fenced = before;
                        }
                        if (program_[k].kind == Kind::kWait) {
                            learn(op.thread, released, before, fenced);
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
                if (op.reads() && does_acquire(fails ? op.failure : op.order)) {
                    before |= released[from_[i]];
                }
                if (op.kind == Kind::kFence && does_acquire(op.order)) {
                    before |= acquirable;
                }
                before_[i] = before;
                if (fails || op.kind == Kind::kLoad || !op.accesses()) {
                    continue;
                }
                values[i + 1] = op.value + (op.kind == Kind::kAdd ? old : 0);
                released[i + 1] = (does_release(op.order) ? before | 1U << i : fenced) |
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

    bool is_in_stream(std::size_t thread) const { return thread < program_.kernels; }

    /// Whether all kernels before this one have ended.
    bool have_ended(std::size_t kernel, const std::vector<bool>& done) const {
        for (std::size_t i = 0; i < program_.size(); ++i) {
            if (is_in_stream(kernel) && program_[i].thread < kernel && !done[i + 1]) {
                return false;
            }
        }
        return true;
    }

    /// A dependent may start when the kernel before it has triggered or ended.
    bool may_start(std::size_t thread, const std::vector<bool>& done) const {
        if (!is_in_stream(thread) || !program_.is_dependent[thread] || thread == 0) {
            return have_ended(thread, done);
        }
        bool may = have_ended(thread, done);
        for (std::size_t i = 0; i < program_.size(); ++i) {
            may = may || (program_[i].thread == thread - 1 && program_[i].kind == Kind::kTrigger &&
                          done[i + 1]);
        }
        return may && have_ended(thread - 1, done);
    }

    /// Adds what is known after the end of all kernels before this one.
    void learn(std::size_t kernel, const std::vector<std::uint32_t>& released,
               std::uint32_t& before, std::uint32_t& fenced) const {
        std::uint32_t known = 0;
        for (std::size_t i = 0; i < program_.size(); ++i) {
            if (is_in_stream(kernel) && program_[i].thread < kernel) {
                known |= before_[i] | 1U << i;
                known |= program_.end_is_fence && program_[i].reads() ? released[from_[i]] : 0;
            }
        }
        before |= known;
        fenced |= program_.end_is_fence ? known : 0;
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
            if (!program_[i].accesses()) {
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

}  // namespace symm::explore
