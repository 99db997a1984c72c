// Threads that take turns: each is a fiber, and runs until it waits.

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tools/explore/exploration.hpp"

namespace symm::explore {

void Exploration::live(void* thread) {
    try {
        static_cast<Thread*>(thread)->stack_base = __builtin_frame_address(0);
        running->inside_ = false;
        static_cast<Thread*>(thread)->body();
        const Inside inside(*running);  // settles its last access
    } catch (...) {                     // the explorer's: kernels throw nothing
        running->error_ = std::current_exception();
    }
    running->inside_ = true;
    static_cast<Thread*>(thread)->state = ThreadState::kEnded;
}

// A __shared__ variable has one place in a program. Each block's values are there while one of its
// threads runs.
void Exploration::bring_statics(SceneBlock& block) {
    if (static_bytes_ == 0 || with_statics_ == &block) {
        return;
    }
    if (with_statics_ != nullptr) {
        std::memcpy(with_statics_->statics, statics_, static_bytes_);
    }
    std::memcpy(statics_, block.statics, static_bytes_);
    with_statics_ = &block;
}

void Exploration::resume(Thread& thread) {
    bring_statics(*thread.scene_block);
    current_ = &thread;
    thread.fiber->resume();
    current_ = nullptr;
    if (error_) {
        std::rethrow_exception(std::exchange(error_, nullptr));
    }
}

void Exploration::run_ready() {
    for (bool again = true; again;) {
        again = false;
        for (std::size_t i = 0; i < thread_count_; ++i) {
            if (threads_[i].state == ThreadState::kReady) {
                again = true;
                resume(threads_[i]);
            }
        }
    }
}

void* Exploration::allocate_bytes(std::size_t bytes) {
    used_ = (used_ + 127) / 128 * 128;
    if (bytes > kSceneBytes - used_) {
        throw std::runtime_error("the scene's memory is too large");
    }
    char* const memory = scene_ + used_;
    used_ += bytes;
    return memory;
}

void Exploration::name_bytes(const void* memory, std::size_t bytes, std::size_t element,
                             Shown shown, const std::string& name, int rank) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    names_.push_back({begin, begin + bytes, element, shown, rank,
                      rank < 0 ? name : fmt::format("r{}.{}", rank, name)});
}

void Exploration::launch(int rank, const Shape& shape,
                         const std::function<void(const simt::ThreadBlock&)>& body) {
    MeetingPoint& end =
        kernel_ends_.try_emplace(rank, MeetingPoint{"kernel end", 0, true}).first->second;
    const dim3& grid = shape.blocks;
    const unsigned threads = shape.threads.x * shape.threads.y * shape.threads.z;
    const unsigned blocks = grid.x * grid.y * grid.z;
    end.expected += std::size_t{blocks} * threads;
    for (unsigned b = 0; b < blocks; ++b) {
        SceneBlock& block = blocks_.emplace_back();
        block.group_index = dim3(b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y);
        block.grid_dim = grid;
        block.dim = shape.threads;
        block.size = threads;
        block.values.resize(threads);
        block.exchange = block.values.data();
        if (shape.shared_bytes != 0) {
            block.shared = allocate<char>(shape.shared_bytes, fmt::format("shared{}", b), rank);
        }
        if (static_bytes_ != 0) {
            block.statics = allocate<char>(static_bytes_, fmt::format("__shared__{}", b), rank);
        }
        block.whole.expected = threads;
        for (unsigned first = 0; first < threads; first += simt::kWarpSize) {
            block.warps.push_back({"warp.sync", std::min(simt::kWarpSize, threads - first)});
        }
        for (unsigned t = 0; t < threads; ++t) {
            add_thread(rank, block, b, t, body);
        }
    }
}

void Exploration::add_thread(int rank, SceneBlock& block, unsigned block_number, unsigned number,
                             const std::function<void(const simt::ThreadBlock&)>& body) {
    if (thread_count_ == kMostThreads) {
        throw std::runtime_error(fmt::format("more than {} threads", kMostThreads));
    }
    Thread& thread = threads_[thread_count_++];
    auto fiber = thread.fiber != nullptr ? std::move(thread.fiber) : std::make_unique<Fiber>();
    thread = {.rank = rank,
              .block = static_cast<int>(block_number),
              .number = static_cast<int>(number),
              .scene_block = &block,
              .fiber = std::move(fiber),
              .handle = {&block, number}};
    thread.view.now.step(number_of(thread));
    thread.body = [body, &thread] { body(thread.handle); };
    thread.fiber->start(live, &thread);
}

bool SceneBlock::sync(bool vote) {
    return running->meet(whole, vote);
}
void SceneBlock::sync_warp(unsigned warp) {
    running->meet(warps[warp]);
}
void SceneBlock::sync_named(unsigned number, unsigned threads) {
    MeetingPoint& point = named.try_emplace(number, MeetingPoint{"named sync"}).first->second;
    point.expected = threads;
    running->meet(point);
}

bool Exploration::meet(MeetingPoint& point, bool vote) {
    const Inside inside(*this);
    log({point.name, {}, point.passed});
    had_effect();
    point.vote |= vote;
    point.waiting.push_back(number_of(*current_));
    if (point.waiting.size() + point.left < point.expected) {
        current_->state = ThreadState::kAtBarrier;
        current_->fiber->suspend();
        return point.result;
    }
    pass(point);
    return point.result;
}

void Exploration::pass(MeetingPoint& point) {
    const bool is_fence = point.ends_kernel && options_.kernel_end == KernelEnd::kFence;
    View all;
    NumberSet past = point.left_past;
    bool gave_up = false;
    for (const int i : point.waiting) {
        const ThreadView& view = threads_[static_cast<std::size_t>(i)].view;
        all.join(view.now);
        if (is_fence) {
            all.join(view.acquirable);
        }
        gave_up |= point.ends_kernel && threads_[static_cast<std::size_t>(i)].gave_up;
        past.insert(view.past);
    }
    for (const int i : point.waiting) {
        Thread& thread = threads_[static_cast<std::size_t>(i)];
        thread.view.now = all;
        thread.view.past = past;
        thread.view.now.step(i);
        if (is_fence) {
            thread.view.released = all;
        }
        thread.gave_up |= gave_up;
        if (point.ends_kernel) {
            thread.scene_block->whole.left = 0;
        }
        thread.state = ThreadState::kReady;
    }
    point.waiting.clear();
    ++point.passed;
    point.result = std::exchange(point.vote, false);
}

void Exploration::leave_block() {
    const Inside inside(*this);
    MeetingPoint& whole = current_->scene_block->whole;
    ++whole.left;
    whole.left_past.insert(current_->view.past);
    if (!whole.waiting.empty() && whole.waiting.size() + whole.left == whole.expected) {
        pass(whole);
    }
}

}  // namespace symm::explore
