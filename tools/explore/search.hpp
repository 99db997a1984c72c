#pragma once
/// \file
/// Which execution comes next.
///
/// An execution is a list of choices: which thread's wait ends next, and with which values
/// (*moves*), and where a store comes in the order of its location (*places*). Everything else,
/// the stores and the plain accesses, is done as soon as it can be: no choice that is left later
/// would be possible without it, since a store hides nothing from a load that may read older ones.
///
/// The search goes through the tree of choices, depth first, and leaves out what is equivalent:
///
/// | what              | leaves out                                                                |
/// |-------------------|---------------------------------------------------------------------------|
/// | sleep sets        | a move that was tried here before, until its thread has another one: two threads' moves commute, as loads |
/// | source sets       | to try another thread first at all, unless a later store shows that its move could read something else there |
///
/// A store comes after a load of another thread that could have read it, if the load had waited:
/// then the threads that lead to the store are tried before the load (Abdulla and others, "Optimal
/// Dynamic Partial Order Reduction": source sets). In the same way an addition or a swap comes
/// after another one that has taken what it could have read.
///
/// Depth first, the earliest choices change last. In a large tree a fault that needs one of them
/// is far away, so there are random executions, too (Options::random_after).

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "common/simt/explored.hpp"
#include "tools/explore/explore.hpp"
#include "tools/explore/model.hpp"

namespace symm::explore {

/// The most threads of a scene.
inline constexpr std::size_t kMostThreads = 256;
using Threads = std::bitset<kMostThreads>;

/// How a wait may end.
struct ThreadMove {
    int thread = -1;
    simt::Awaited how = simt::Awaited::kTrue;
    bool misses = false;               ///< It does not end: its poll came too late.
    std::vector<std::uint64_t> reads;  ///< The ids of the stores that its loads read, in turn.
    bool operator==(const ThreadMove&) const = default;
};

/// With the same choices, the threads of a scene made other steps.
[[noreturn]] void refuse_chance();

class Search {
public:
    explicit Search(const Options& options) : reduction_(options.reduction) {}

    void begin_execution();
    // `trace` stands for all steps before: it must be the same where the choices were.
    /// One of `count` possibilities.
    std::size_t choose(std::size_t count, std::uint64_t trace);
    /// Whether the next executions are random ones, which the search does not remember.
    void at_random(bool random) { at_random_ = random; }
    /// What decides about these.
    std::mt19937_64& random() { return random_; }
    /// One of the moves, or null where all are asleep: something equivalent was visited. `polled`
    /// has the locations that each thread's poll reads.
    const ThreadMove* next(const std::vector<ThreadMove>& moves,
                           const std::map<int, std::vector<std::size_t>>& polled,
                           std::uint64_t trace);
    /// To be called before each move. Returns its number.
    std::size_t moved(int thread);
    /// To be called after it, with what it depended on, what it has read included.
    void depends(std::size_t move, const NumberSet& past) { made_[move].past = past; }
    /// To be called for each store: which earlier moves could have read it?
    void stored(std::size_t location, int thread, const NumberSet& past) {
        add_races(location, thread, past, true);
    }
    /// To be called for the last move, if it was an addition or a swap: which earlier ones have
    /// taken what it could have read? `past`: what it depends on beside what it has read.
    void updated(std::size_t location, NumberSet past) {
        Made& move = made_.back();
        move.updates = location;
        past.insert(made_.size() - 1);
        add_races(location, move.thread, past, false);
    }
    /// Goes to the next execution. False where there is none.
    bool advance();
    /// An estimate of the part of the tree that was visited, more than 0. All choices that a node
    /// is known to have count as if they led to equally many executions. More become known on the
    /// way: the estimate of all executions counts as if it grew once more as it did since there
    /// were half as many, at most twofold.
    double visited_part() const;
    /// Something was learnt that changes what is a choice: the search has to begin again.
    void learn() { learnt_ = true; }
    bool has_learnt() const { return learnt_; }
    void restart() {
        path_.clear();
        estimates_.clear();
        executions_ = 0;
        new_from_ = 0;
        learnt_ = false;
    }

private:
    struct Node {
        std::uint64_t trace = 0;
        std::size_t count = 0;          ///< A choice has this many ways; 0: a move.
        std::size_t index = 0;          ///< What is taken.
        std::vector<ThreadMove> taken;  ///< Moves tried before, the present one, and those to come.
        std::vector<ThreadMove> all;
        std::vector<ThreadMove> asleep;
        std::map<int, std::vector<std::size_t>> polled;
        Threads wanted, begun;
    };
    struct Made {
        int thread;
        NumberSet past;
        std::size_t node;
        std::optional<std::size_t> updates = {};
    };
    /// After so many executions, of all.
    struct Estimate {
        double executions, all;
    };
    double known_part() const;
    static void require_same(const Node& node, std::size_t count, std::uint64_t trace);
    void add_races(std::size_t location, int thread, const NumberSet& past, bool with_loads);

    const Reduction reduction_;
    bool at_random_ = false;
    bool learnt_ = false;
    std::mt19937_64 random_;
    std::vector<Node> path_;
    std::vector<Estimate> estimates_;  ///< Each after 1.1 times as many executions.
    double executions_ = 0;
    std::vector<Made> made_;
    std::vector<ThreadMove> asleep_;  ///< At the present depth.
    std::size_t depth_ = 0;
    std::size_t new_from_ = 0;  ///< Nodes before this one had the same stores after them last time.
};

}  // namespace symm::explore
