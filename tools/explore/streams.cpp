#include "tools/explore/streams.hpp"

#include <algorithm>

namespace symm::explore {
namespace {

Launch::Block& block_of(const Thread& thread) {
    Launch& launch = *thread.launch;
    return launch.blocks[static_cast<std::size_t>(thread.block - launch.first_block)];
}

bool has_ended(const Launch* launch) {
    return launch == nullptr || launch->ended;
}

bool may_start(const Launch& launch) {
    if (launch.order == LaunchOrder::kAfter || launch.before == nullptr) {
        return has_ended(launch.before);
    }
    return has_ended(launch.before->before) &&
           std::ranges::all_of(launch.before->blocks, &Launch::Block::triggered);
}

bool may_end(const Launch& launch) {
    return has_ended(launch.before) &&
           std::ranges::all_of(launch.blocks, [](const auto& block) { return block.left == 0; });
}

}  // namespace

void Streams::add(int rank, LaunchOrder order, std::size_t blocks, std::span<Thread> threads) {
    Stream& stream = streams_[rank];
    Launch* const before = stream.empty() ? nullptr : &stream.back();
    Launch& launch = stream.emplace_back(Launch{order, before, threads});
    launch.blocks.assign(blocks, {threads.size() / blocks});
    if (before != nullptr) {
        launch.first_block = before->first_block + static_cast<int>(before->blocks.size());
        for (Launch::Block& block : before->blocks) {
            block.triggers = order == LaunchOrder::kDependent
                                 ? static_cast<int>(search_.choose(block.left, log_.trace()))
                                 : 0;
        }
    }
    for (Thread& thread : threads) {
        thread.launch = &launch;
        thread.block += launch.first_block;
        thread.state = ThreadState::kQueued;
    }
    update(stream);
}

// Starts the launches that may start, lets those threads go on whose wait is over, and ends the
// launches that may end.
void Streams::update(Stream& stream) {
    for (Launch& launch : stream) {
        if (!launch.started && may_start(launch)) {
            launch.started = true;
            resume(launch, launch.order == LaunchOrder::kAfter);
        } else if (launch.started && has_ended(launch.before)) {
            resume(launch, true);
        }
        if (!launch.ended && launch.started && may_end(launch)) {
            launch.ended = true;
            if (launch.before != nullptr) {
                launch.known.join(launch.before->known);
                launch.past.insert(launch.before->past);
                launch.gave_up |= launch.before->gave_up;
            }
        }
    }
}

// Its queued threads are ready. `learns`: since the launch before it has ended.
void Streams::resume(Launch& launch, bool learns) {
    const Launch* const before = launch.before;
    for (Thread& thread : launch.threads) {
        if (thread.state != ThreadState::kQueued) {
            continue;
        }
        thread.state = ThreadState::kReady;
        if (before != nullptr && learns) {
            learn(thread, *before);
        } else if (before != nullptr) {
            thread.view.past.insert(before->trigger_past);
            if (before->before != nullptr) {
                thread.view.past.insert(before->before->past);
            }
        }
    }
}

void Streams::learn(Thread& thread, const Launch& ended) const {
    thread.view.now.join(ended.known);
    thread.view.now.fence_alias();
    thread.view.past.insert(ended.past);
    thread.view.now.step(thread.index);
    if (kernel_end_ == KernelEnd::kFence) {
        thread.view.released.join(ended.known);
    }
    thread.gave_up |= ended.gave_up;
}

void Streams::wait_for_predecessor(Thread& thread) {
    if (thread.launch == nullptr) {
        return;
    }
    thread.idle.had_effect();
    if (const Launch* const before = thread.launch->before; has_ended(before)) {
        if (before != nullptr) {
            learn(thread, *before);
        }
    } else {
        thread.suspend(ThreadState::kQueued);
    }
    log_.add(thread, {"waits for the kernel before"});
}

void Streams::launch_dependents(Thread& thread) {
    if (thread.launch == nullptr) {
        return;
    }
    thread.idle.had_effect();
    log_.add(thread, {"lets the next kernel start"});
    Launch::Block& block = block_of(thread);
    if (block.triggers == thread.number && !block.triggered) {
        block.triggered = true;
        thread.launch->trigger_past.insert(thread.view.past);
        update(streams_[thread.rank]);
    }
}

void Streams::end(Thread& thread) {
    if (thread.launch == nullptr) {
        return;
    }
    log_.add(thread, {"ends"});
    schedule_.leave_block(thread);
    Launch& launch = *thread.launch;
    launch.known.join(thread.view.now);
    if (kernel_end_ == KernelEnd::kFence) {
        launch.known.join(thread.view.acquirable);
    }
    launch.past.insert(thread.view.past);
    launch.gave_up |= thread.gave_up;
    Launch::Block& block = block_of(thread);
    block.past.insert(thread.view.past);
    if (--block.left == 0 && !block.triggered) {
        block.triggered = true;
        launch.trigger_past.insert(block.past);
    }
    update(streams_[thread.rank]);
}

std::vector<std::uint64_t> Streams::triggers() const {
    std::vector<std::uint64_t> triggers;
    for (const auto& [rank, stream] : streams_) {
        for (const Launch& launch : stream) {
            for (const Launch::Block& block : launch.blocks) {
                triggers.push_back(static_cast<std::uint64_t>(block.triggers));
            }
        }
    }
    return triggers;
}

}  // namespace symm::explore
