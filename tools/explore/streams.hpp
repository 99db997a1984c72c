#pragma once
/// \file
/// Streams: the launches of a rank, one after another, of which two may overlap (LaunchOrder).
///
/// | what                     | waits for                                   | its threads then know |
/// |--------------------------|---------------------------------------------|-----------------------|
/// | a launch kAfter starts   | the end of the launch before                | what that, and all before it, did |
/// | one kDependent starts    | of each block of the launch before: the trigger, or its end; the end of the launch before that, so two are alive at most | nothing |
/// | wait_for_predecessor()   | the end of the launch before                | as kAfter             |
/// | the end of a launch      | its threads, and the end of the launch before, also if none of them has waited | |
///
/// A launch starts as soon as it may. A later start allows nothing else, as a load may also read
/// what is stored later (search.hpp). But which thread of a block triggers first matters, so one is
/// chosen, and the triggers of the others do not count.

#include <deque>
#include <map>
#include <span>
#include <vector>

#include "common/cuda/launch_order.hpp"
#include "tools/explore/schedule.hpp"

namespace symm::explore {

/// A kernel of a stream.
struct Launch {
    LaunchOrder order;
    Launch* before;  ///< In its stream; null for the first.
    std::span<Thread> threads;
    struct Block {
        std::size_t left;        ///< Threads that have not ended.
        int triggers = 0;        ///< The thread whose trigger counts.
        bool triggered = false;  ///< Or ended.
        NumberSet past = {};     ///< The choices on which its end depends.
    };
    int first_block = 0;  ///< Thread::block of its first one.
    std::vector<Block> blocks = {};
    bool started = false;
    bool ended = false;
    NumberSet trigger_past = {};  ///< The choices on which the start of a dependent launch depends.
    // What is known after its end:
    View known = {};
    NumberSet past = {};
    bool gave_up = false;
};

class Streams {
public:
    Streams(KernelEnd kernel_end, Schedule& schedule, Search& search, Log& log)
        : kernel_end_(kernel_end), schedule_(schedule), search_(search), log_(log) {}

    void clear() { streams_.clear(); }
    /// Adds a launch of `blocks` blocks, whose threads the schedule has just got.
    void add(int rank, LaunchOrder order, std::size_t blocks, std::span<Thread> threads);

    // For a thread that runs. Nothing if it is of no stream.
    void wait_for_predecessor(Thread& thread);
    void launch_dependents(Thread& thread);
    void end(Thread& thread);

    /// The threads whose triggers count, for those who compare executions.
    std::vector<std::uint64_t> triggers() const;

private:
    using Stream = std::deque<Launch>;

    void update(Stream& stream);
    void resume(Launch& launch, bool learns);
    void learn(Thread& thread, const Launch& ended) const;

    const KernelEnd kernel_end_;
    Schedule& schedule_;
    Search& search_;
    Log& log_;
    std::map<int, Stream> streams_;  ///< By rank.
};

}  // namespace symm::explore
