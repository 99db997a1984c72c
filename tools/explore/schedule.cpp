#include "tools/explore/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace symm::explore {
namespace {

void live(void* argument) {
    Thread& thread = *static_cast<Thread*>(argument);
    try {
        thread.stack_base = __builtin_frame_address(0);
        thread.body(thread);
    } catch (...) {
        thread.error = std::current_exception();
    }
    thread.state = ThreadState::kEnded;
}

}  // namespace

void Schedule::clear() {
    count_ = 0;
    kernel_ends_.clear();
    blocks_.clear();
}

std::span<Thread> Schedule::launch(Scene& scene, int rank, const Shape& shape, bool in_stream,
                                   const std::function<void(Thread&)>& body) {
    const std::size_t begin = count_;
    const dim3& grid = shape.blocks;
    const unsigned threads = shape.threads.x * shape.threads.y * shape.threads.z;
    const unsigned blocks = grid.x * grid.y * grid.z;
    MeetingPoint* end = nullptr;
    if (!in_stream) {
        end = &kernel_ends_.try_emplace(rank, MeetingPoint{"kernel end", 0, true}).first->second;
        end->expected += std::size_t{blocks} * threads;
    }
    for (unsigned b = 0; b < blocks; ++b) {
        SceneBlock& block = blocks_.emplace_back();
        block.group_index = dim3(b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y);
        block.grid_dim = grid;
        block.dim = shape.threads;
        block.size = threads;
        block.values.resize(threads);
        block.exchange = block.values.data();
        if (shape.shared_bytes != 0) {
            block.shared_bytes = shape.shared_bytes;
            auto* const shared =
                scene.allocate<char>(shape.shared_bytes, fmt::format("shared{}", b), rank);
            const auto begin = reinterpret_cast<std::uintptr_t>(block.shared = shared);
            shared_ = {std::min(shared_.first, begin),
                       std::max(shared_.second, begin + shape.shared_bytes)};
        }
        char* statics = nullptr;
        if (const std::size_t bytes = memory_.static_bytes(); bytes != 0) {
            statics = scene.allocate<char>(bytes, fmt::format("__shared__{}", b), rank);
        }
        block.kernel_end = end;
        block.whole.expected = threads;
        for (unsigned first = 0; first < threads; first += simt::kWarpSize) {
            block.warps.push_back({"warp.sync", std::min(simt::kWarpSize, threads - first)});
            block.exchanges.push_back({"shfl.sync", std::min(simt::kWarpSize, threads - first)});
            block.exchanges.back().orders = false;
        }
        for (unsigned t = 0; t < threads; ++t) {
            if (count_ == kMostThreads) {
                throw std::runtime_error(fmt::format("more than {} threads", kMostThreads));
            }
            Thread& thread = threads_[count_];
            auto fiber = std::move(thread.fiber);
            thread = {.index = static_cast<int>(count_++),
                      .rank = rank,
                      .block = static_cast<int>(b),
                      .number = static_cast<int>(t),
                      .scene_block = &block,
                      .statics = statics,
                      .fiber = fiber != nullptr ? std::move(fiber) : std::make_unique<Fiber>(),
                      .body = body,
                      .handle = {&block, t}};
            thread.view.now.step(thread.index);
            thread.fiber->start(live, &thread);
            const auto [begin, end] = thread.fiber->stack();
            stacks_ = {std::min(stacks_.first, begin), std::max(stacks_.second, end)};
        }
    }
    return {&threads_[begin], count_ - begin};
}

const Thread* Schedule::owner_of_stack(std::uintptr_t address) const {
    if (address < stacks_.first || address >= stacks_.second) {
        return nullptr;
    }
    const auto is_its = [&](const Thread& one) {
        const auto [begin, end] = one.fiber->stack();
        return begin <= address && address < end;
    };
    const auto all = std::span(threads_).first(count_);
    const auto found = std::ranges::find_if(all, is_its);
    return found == all.end() ? nullptr : &*found;
}

bool Schedule::is_shared_of_another(const Thread& thread, std::uintptr_t address) const {
    return shared_.first <= address && address < shared_.second &&
           std::ranges::any_of(blocks_, [&](const SceneBlock& block) {
               return &block != thread.scene_block &&
                      address - reinterpret_cast<std::uintptr_t>(block.shared) < block.shared_bytes;
           });
}

void Schedule::run_ready() {
    for (bool again = true; again;) {
        again = false;
        for (Thread& thread : threads()) {
            if (thread.state == ThreadState::kReady) {
                again = true;
                memory_.bring(thread.statics);
                thread.fiber->resume();
                if (thread.error) {
                    std::rethrow_exception(std::exchange(thread.error, nullptr));
                }
            }
        }
    }
}

bool Schedule::meet(Thread& thread, MeetingPoint& point, bool vote) {
    log_.add(thread, {point.name, {}, point.passed});
    thread.idle.had_effect();
    point.vote |= vote;
    point.waiting.push_back(&thread);
    if (point.waiting.size() + point.left < point.expected) {
        thread.suspend(ThreadState::kAtBarrier);
    } else {
        pass(point);
    }
    return point.result;
}

// All threads of its block are there again, and its shared memory holds nothing.
void Schedule::begin_kernel(const Thread& thread) const {
    SceneBlock& block = *thread.scene_block;
    block.whole.left = 0;
    for (auto* const points : {&block.warps, &block.exchanges}) {
        for (MeetingPoint& warp : *points) {
            warp.left = 0;
        }
    }
    if (block.shared != nullptr) {
        memory_.forget(static_cast<char*>(block.shared), block.shared_bytes);
    }
    if (thread.statics != nullptr) {
        memory_.forget(thread.statics, memory_.static_bytes());
    }
}

void Schedule::pass(MeetingPoint& point) const {
    if (point.ends_kernel) {
        log_.refuse_unseen();
    }
    const bool is_fence = point.ends_kernel && kernel_end_ == KernelEnd::kFence;
    View all;
    NumberSet past = point.left_past;
    bool gave_up = false;
    for (const Thread* const thread : point.waiting) {
        all.join(thread->view.now);
        if (is_fence) {
            all.join(thread->view.acquirable);
        }
        gave_up |= point.ends_kernel && thread->gave_up;
        past.insert(thread->view.past);
    }
    if (point.ends_kernel) {
        all.fence_alias();
    }
    for (Thread* const thread : point.waiting) {
        if (point.orders) {
            thread->view.now = all;
        }
        thread->view.past = past;
        thread->view.now.step(thread->index);
        if (is_fence) {
            thread->view.released = all;
        }
        thread->gave_up |= gave_up;
        if (point.ends_kernel) {
            begin_kernel(*thread);
        }
        thread->state = ThreadState::kReady;
    }
    point.waiting.clear();
    ++point.passed;
    point.result = std::exchange(point.vote, false);
}

void Schedule::leave_block(Thread& thread) {
    SceneBlock& block = *thread.scene_block;
    const std::size_t warp = static_cast<std::size_t>(thread.number) / simt::kWarpSize;
    // No shuffle may read it any more.
    std::memset(&block.values[static_cast<std::size_t>(thread.number)], kUnwritten,
                sizeof(std::uint64_t));
    for (MeetingPoint* const point : {&block.whole, &block.warps[warp], &block.exchanges[warp]}) {
        ++point->left;
        point->left_past.insert(thread.view.past);
        if (!point->waiting.empty() && point->waiting.size() + point->left == point->expected) {
            pass(*point);
        }
    }
}

}  // namespace symm::explore
