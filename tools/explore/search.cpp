#include "tools/explore/search.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace symm::explore {
namespace {

/// Adds those moves of a thread that are not asleep.
void add_awake(const std::vector<ThreadMove>& moves, int thread,
               const std::vector<ThreadMove>& asleep, std::vector<ThreadMove>& awake) {
    std::ranges::copy_if(moves, std::back_inserter(awake), [&](const ThreadMove& move) {
        return move.thread == thread && std::ranges::find(asleep, move) == asleep.end();
    });
}

}  // namespace

void refuse_chance() {
    throw std::runtime_error(
        "the scene is not deterministic: with the same choices its threads made other steps. Does "
        "it use random numbers, the time, addresses of the heap, or a static variable that its "
        "first use initializes?");
}

void Search::begin_execution() {
    depth_ = 0;
    made_.clear();
    asleep_.clear();
}

// This node was reached by the same choices before.
void Search::require_same(const Node& node, std::size_t count, std::uint64_t trace) {
    if (node.count != count || node.trace != trace) {
        refuse_chance();
    }
}

std::size_t Search::choose(std::size_t count, std::uint64_t trace) {
    if (count == 1) {
        return 0;
    }
    if (at_random_) {
        return random_() % count;
    }
    if (depth_ == path_.size()) {
        path_.push_back({.trace = trace, .count = count});
    }
    require_same(path_[depth_], count, trace);
    return path_[depth_++].index;
}

const ThreadMove* Search::next(const std::vector<ThreadMove>& moves,
                               const std::map<int, std::vector<std::size_t>>& polled,
                               std::uint64_t trace) {
    if (at_random_) {
        return &moves[random_() % moves.size()];
    }
    if (depth_ == path_.size()) {
        Node node{.trace = trace};
        node.all = moves;
        node.polled = polled;
        node.asleep = asleep_;
        const auto first = std::ranges::find_if(moves, [&](const ThreadMove& move) {
            return std::ranges::find(asleep_, move) == asleep_.end();
        });
        if (first == moves.end()) {
            return nullptr;
        }
        add_awake(moves, first->thread, asleep_, node.taken);
        node.begun.set(static_cast<std::size_t>(first->thread));
        if (reduction_ == Reduction::kSourceSets) {
            node.wanted = node.begun;
        } else {
            node.wanted.set();
        }
        path_.push_back(std::move(node));
    }
    const Node& node = path_[depth_++];
    require_same(node, 0, trace);
    const ThreadMove& chosen = node.taken[node.index];
    asleep_.clear();
    if (reduction_ != Reduction::kNone) {
        // A thread's other moves are gone once it has moved; those of others are still possible.
        const auto is_of_another = [&](const ThreadMove& move) {
            return move.thread != chosen.thread;
        };
        std::ranges::copy_if(node.asleep, std::back_inserter(asleep_), is_of_another);
        std::copy_if(node.taken.begin(), node.taken.begin() + static_cast<long>(node.index),
                     std::back_inserter(asleep_), is_of_another);
    }
    return &chosen;
}

std::size_t Search::moved(int thread) {
    made_.push_back({thread, {}, depth_ - 1});
    return made_.size() - 1;
}

void Search::add_races(std::size_t location, int thread, const NumberSet& past, bool with_loads) {
    if (at_random_ || reduction_ != Reduction::kSourceSets || depth_ < new_from_) {
        return;
    }
    for (std::size_t n = made_.size(); n-- > 0;) {
        const Made& load = made_[n];
        Node& node = path_[load.node];
        const auto polled = node.polled.find(load.thread);
        const bool loads = with_loads && polled != node.polled.end() &&
                           std::ranges::count(polled->second, location) != 0;
        if (load.thread == thread || past.contains(n) || !(loads || load.updates == location)) {
            continue;
        }
        // The threads that can move first among what follows without the load, and the one of
        // them that leads to the store.
        Threads first;
        int leading = -1;
        NumberSet later;
        for (std::size_t k = n + 1; k < made_.size(); ++k) {
            const Made& other = made_[k];
            // An addition would read another value if it came before the load.
            const NumberSet& depends = !with_loads && k + 1 == made_.size() ? past : other.past;
            if (depends.contains(n) || other.thread == load.thread) {
                continue;
            }
            if (!depends.intersects(later)) {
                first.set(static_cast<std::size_t>(other.thread));
                if (leading < 0 && past.contains(k)) {
                    leading = other.thread;
                }
            }
            later.insert(k);
        }
        if (leading >= 0 && (node.wanted & first).none()) {
            node.wanted.set(static_cast<std::size_t>(leading));
        }
    }
}

double Search::known_part() const {
    double visited = 0;
    double part = 1;  // of this node's subtree
    for (const Node& node : path_) {
        std::size_t ways = node.count;
        if (ways == 0) {
            ways = node.taken.size();
            for (const ThreadMove& move : node.all) {
                const auto thread = static_cast<std::size_t>(move.thread);
                ways += node.wanted.test(thread) && !node.begun.test(thread) &&
                                std::ranges::find(node.asleep, move) == node.asleep.end()
                            ? 1
                            : 0;
            }
        }
        part /= static_cast<double>(ways);
        visited += part * static_cast<double>(node.index);
    }
    return std::max(visited, part);
}

double Search::visited_part() const {
    const double part = known_part();
    const auto half =
        std::ranges::lower_bound(estimates_, executions_ / 2, {}, &Estimate::executions);
    const double growth = half == estimates_.end() ? 1 : executions_ / part / half->all;
    return part / std::clamp(growth, 1.0, 2.0);
}

bool Search::advance() {
    if (executions_ > (estimates_.empty() ? 0 : 1.1 * estimates_.back().executions)) {
        estimates_.push_back({executions_, executions_ / known_part()});
    }
    ++executions_;
    while (!path_.empty()) {
        Node& node = path_.back();
        ++node.index;
        if (node.count != 0 ? node.index < node.count : node.index < node.taken.size()) {
            new_from_ = path_.size();
            return true;
        }
        for (const ThreadMove& move : node.all) {
            const auto thread = static_cast<std::size_t>(move.thread);
            if (node.count != 0 || !node.wanted.test(thread) || node.begun.test(thread)) {
                continue;
            }
            node.begun.set(thread);
            add_awake(node.all, move.thread, node.asleep, node.taken);
            if (node.index < node.taken.size()) {
                new_from_ = path_.size();
                return true;
            }
        }
        path_.pop_back();
    }
    return false;
}

}  // namespace symm::explore
