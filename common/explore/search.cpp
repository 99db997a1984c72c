#include "common/explore/search.hpp"

#include <algorithm>
#include <stdexcept>

namespace symm::explore {

void Search::begin_execution() {
    depth_ = 0;
    made_.clear();
    asleep_.clear();
}

std::uint64_t Search::random(std::size_t below) {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
    return (random_ >> 33) % below;
}

std::size_t Search::choose(std::size_t count) {
    if (count == 1) {
        return 0;
    }
    if (options_.random != 0) {
        return random(count);
    }
    if (depth_ == path_.size()) {
        path_.emplace_back().count = count;
    }
    if (path_[depth_].count != count) {
        throw std::runtime_error("the scene is not deterministic");
    }
    return path_[depth_++].index;
}

bool Search::is_asleep(const std::vector<Move>& asleep, const Move& move) const {
    return std::find(asleep.begin(), asleep.end(), move) != asleep.end();
}

const Move* Search::next(const std::vector<Move>& moves,
                         const std::map<int, std::vector<std::size_t>>& polled) {
    if (options_.random != 0) {
        random_move_ = moves[random(moves.size())];
        return &random_move_;
    }
    if (depth_ == path_.size()) {
        Node node;
        node.all = moves;
        node.polled = polled;
        node.asleep = asleep_;
        const auto first = std::find_if(moves.begin(), moves.end(), [&](const Move& move) {
            return !is_asleep(asleep_, move);
        });
        if (first == moves.end()) {
            return nullptr;
        }
        const int thread = first->thread;
        for (const Move& move : moves) {
            if (move.thread == thread && !is_asleep(asleep_, move)) {
                node.taken.push_back(move);
            }
        }
        node.begun.set(static_cast<std::size_t>(thread));
        if (options_.reduction == Reduction::kSourceSets) {
            node.wanted = node.begun;
        } else {
            node.wanted.set();
        }
        path_.push_back(std::move(node));
    }
    const Node& node = path_[depth_++];
    if (node.count != 0) {
        throw std::runtime_error("the scene is not deterministic");
    }
    const Move& chosen = node.taken[node.index];
    asleep_.clear();
    if (options_.reduction != Reduction::kNone) {
        // A thread's other moves are gone once it has moved; those of others are still possible.
        const auto keep = [&](const Move& move) {
            if (move.thread != chosen.thread) {
                asleep_.push_back(move);
            }
        };
        std::for_each(node.asleep.begin(), node.asleep.end(), keep);
        std::for_each(node.taken.begin(), node.taken.begin() + static_cast<long>(node.index), keep);
    }
    return &chosen;
}

std::size_t Search::moved(int thread) {
    made_.push_back({thread, {}, depth_ - 1});
    return made_.size() - 1;
}

void Search::add_races(std::size_t location, int thread, const Set& past, bool with_loads) {
    if (options_.random != 0 || options_.reduction != Reduction::kSourceSets ||
        depth_ < new_from_) {
        return;
    }
    for (std::size_t n = made_.size(); n-- > 0;) {
        const Made& load = made_[n];
        Node& node = path_[load.node];
        const auto polled = node.polled.find(load.thread);
        const bool loads = with_loads && polled != node.polled.end() &&
                           std::find(polled->second.begin(), polled->second.end(), location) !=
                               polled->second.end();
        if (load.thread == thread || past.contains(n) || !(loads || load.updates == location)) {
            continue;
        }
        // The threads that can move first among what follows without the load, and the one of
        // them that leads to the store.
        Threads first;
        int leading = -1;
        Set later;
        for (std::size_t k = n + 1; k < made_.size(); ++k) {
            const Made& other = made_[k];
            // An addition would read another value if it came before the load.
            const Set& depends = !with_loads && k + 1 == made_.size() ? past : other.past;
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

bool Search::advance() {
    while (options_.random == 0 && !path_.empty()) {
        Node& node = path_.back();
        ++node.index;
        if (node.count != 0 ? node.index < node.count : node.index < node.taken.size()) {
            new_from_ = path_.size();
            return true;
        }
        for (const Move& move : node.all) {
            const auto thread = static_cast<std::size_t>(move.thread);
            if (node.count != 0 || !node.wanted.test(thread) || node.begun.test(thread)) {
                continue;
            }
            node.begun.set(thread);
            for (const Move& other : node.all) {
                if (other.thread == move.thread && !is_asleep(node.asleep, other)) {
                    node.taken.push_back(other);
                }
            }
            if (node.index < node.taken.size()) {
                new_from_ = path_.size();
                return true;
            }
        }
        path_.pop_back();
    }
    return options_.random != 0;
}

}  // namespace symm::explore
