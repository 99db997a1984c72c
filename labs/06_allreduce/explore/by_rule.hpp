#pragma once
/// \file
/// Scenes by rule: the same ones for each algorithm and collective, so that none is forgotten.

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "labs/04_shm_transport/connection/fifo_memory.hpp"
#include "labs/06_allreduce/explore/calls.hpp"
#include "tools/explore/explore_main.hpp"

namespace symm {

/// A scene with too many executions is sampled: so many are visited, and as many random ones.
inline constexpr unsigned kSample = 10;

/// What the sizes of an algorithm's calls depend on.
struct Unit {
    std::size_t elements;    ///< That a thread moves at once: in a slot, a packet, or a pack.
    bool is_cut = false;     ///< The buffers are cut into parts, one for each rank.
    bool has_turns = false;  ///< Blocks take turns, so that there are many executions.
    bool has_steps = false;  ///< As a ring has: there are still more.
    bool rounds = false;     ///< Elements are floats, and ranks add them in rank order.
    bool gives_up = true;    ///< Its waits may give up in all scenes of that kind.
};

/// | scene       | its calls                                                               |
/// |-------------|-------------------------------------------------------------------------|
/// | `sizes`     | one of each special size, with an ordinary one before and after it      |
/// | `wrap`      | the number of calls wraps, then one is larger than those before         |
/// | `nine`      | of steps: one more than a connection has slots                           |
/// | `in_place`  | the input is the output                                                 |
/// | `average`   | of ranks that reduce                                                    |
/// | `order`     | of ranks that reduce floats: another order gives other sums             |
/// | `in`, `out` | only rank 1's input, or output, is not aligned                          |
/// | `gives_up`  | two ordinary ones and a small one between: each wait may give up        |
///
/// An ordinary call has one unit for each thread. Special sizes are one element; an element less
/// and more than a unit; an element less and more than an ordinary call; twice that, and one more.
/// The root of a Broadcast or a Reduce changes with the size.
class ByRule {
public:
    std::vector<explore::Protocol> scenes;

    /// Adds an algorithm's scenes, which `fill(scene, calls)` makes.
    template <class Fill>
    void add(const std::string& name, const Unit& unit, Collective collective, const Fill& fill) {
        for (const Shape& shape : shapes()) {
            const Ranks& who = shape.who;
            const bool is_large = who.ranks * static_cast<int>(who.blocks) > 5 || who.threads > 2;
            const unsigned sample = unit.has_steps || (unit.has_turns && is_large) ? kSample : 0;
            const auto add = [&](const std::string& kind, Calls calls, bool may_give_up = false) {
                calls.who = who;
                calls.collective = collective;
                calls.other.any_root = true;
                calls.other.slots = slots(unit, calls);
                scenes.push_back({"by_rule/" + name + '/' + shape.name + '/' + kind,
                                  [=](Scene& scene) { fill(scene, calls); }, may_give_up, sample});
            };
            const std::vector<std::size_t> sizes = special(unit, collective, who);
            const std::size_t usual = sizes.front();
            const std::size_t odd = sizes.at(1);
            const std::size_t largest = *std::ranges::max_element(sizes);
            // With turns each call has several executions, so that there are two calls at most.
            const auto between = [&](const std::vector<std::size_t>& special) {
                std::vector<std::size_t> counts;
                for (const std::size_t one : special) {
                    counts.insert(counts.end(), {usual, one});
                }
                counts.push_back(usual);
                return unit.has_turns ? std::vector{special.back(), usual} : counts;
            };
            if (unit.has_turns) {
                for (const std::size_t one : sizes) {
                    add("sizes/" + std::to_string(one), {{}, between({one})});
                }
            } else {
                add("sizes", {{}, between(sizes)});
            }
            add("wrap", {{}, between({usual, largest}), {.epoch = unit.has_turns ? ~0U : ~2U}});
            if (unit.has_steps) {
                add("nine", {{}, std::vector(kSteps + 1, usual)});
            }
            if (row_of(collective).reduces()) {
                add("average", {{}, {odd, usual}, {.average = true}});
            }
            if (row_of(collective).reduces() && unit.rounds && who.ranks > 2) {
                add("order", {{}, {odd, usual}, {.rounds = true}});
            }
            if (!row_of(collective).has_parts()) {
                add("in_place", {{}, between({largest}), {.in_place = true}});
            }
            add("in", {{}, between({odd}), {.unaligned_in = true}});
            add("out", {{}, between({odd}), {.unaligned_out = true}});
            if (unit.gives_up && who.threads * who.blocks == 1 &&
                who.ranks <= (unit.has_turns ? 2 : 3)) {
                add("gives_up", {{}, {usual, odd, usual}}, true);
            }
        }
    }

private:
    struct Shape {
        std::string name;
        Ranks who;
    };
    static std::vector<Shape> shapes() {
        return {{"2x1", {2}},         {"2x2", {2, 2}}, {"2x1x2", {2, 1, 2}},
                {"2x2x2", {2, 2, 2}}, {"3x1", {3}},    {"3x2", {3, 2}},
                {"3x1x2", {3, 1, 2}}, {"5x1", {5}},    {"grids", {2, 1, 2, true}},
                {"2x33", {2, 33}}};
    }
    /// One unit for each thread, then the others.
    static std::vector<std::size_t> special(const Unit& unit, Collective collective,
                                            const Ranks& who) {
        const CollectiveRow& row = row_of(collective);
        const std::size_t parts =
            row.in_has_parts() || row.out_has_parts() ? static_cast<unsigned>(who.ranks) : 1;
        const std::size_t per_thread =
            unit.elements * (unit.is_cut ? static_cast<unsigned>(who.ranks) : 1);
        const std::size_t most = (kMostElements - 2) / parts;
        const std::size_t whole = most / unit.elements * unit.elements;
        const std::size_t usual =
            std::min(per_thread * who.threads * who.blocks, whole != 0 ? whole : most);
        std::vector<std::size_t> sizes = {usual};
        for (const std::size_t one : {std::size_t{1}, unit.elements - 1, unit.elements + 1,
                                      usual - 1, usual + 1, 2 * usual, 2 * usual + 1}) {
            if (one != 0 && one <= most && std::ranges::count(sizes, one) == 0) {
                sizes.push_back(one);
            }
        }
        return sizes;
    }
    /// Of a mailbox, for each sender.
    static unsigned slots(const Unit& unit, const Calls& calls) {
        const std::size_t largest = *std::ranges::max_element(calls.counts);
        return static_cast<unsigned>(std::bit_ceil(largest / unit.elements + 2));
    }
};

}  // namespace symm
