// Threads that take turns: each has a stack of its own, and runs until it waits.

#include "common/explore/execution.hpp"

#include <cstdlib>
#include <stdexcept>

asm(R"(
    .text
    .globl symm_explore_switch
    .type symm_explore_switch, @function
symm_explore_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size symm_explore_switch, .-symm_explore_switch
)");

namespace symm::explore {

void Runtime::live() {
    Thread& thread = *running->current_;
    try {
        running->inside_ = false;
        thread.body();
    } catch (...) {  // the explorer's: kernels throw nothing
        running->error_ = std::current_exception();
    }
    running->inside_ = true;
    thread.state = State::kEnded;
    symm_explore_switch(&thread.sp, running->scheduler_sp_);
    std::abort();
}

void Runtime::resume(Thread& thread) {
    current_ = &thread;
    symm_explore_switch(&scheduler_sp_, thread.sp);
    current_ = nullptr;
    if (error_) {
        std::rethrow_exception(std::exchange(error_, nullptr));
    }
}

void* Runtime::allocate(std::size_t count, std::size_t size, const std::string& of, int rank) {
    const std::size_t bytes = count * size;
    used_ = (used_ + 127) / 128 * 128;
    if (bytes > kSceneBytes - used_) {
        throw std::runtime_error("the scene's memory is too large");
    }
    char* const memory = scene_ + used_;
    used_ += bytes;
    name(memory, count, size, of, rank);
    return memory;
}

void Runtime::name(const void* memory, std::size_t count, std::size_t size, const std::string& name,
                   int rank) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    names_.push_back(
        {begin, begin + count * size, size, rank < 0 ? name : fmt::format("r{}.{}", rank, name)});
}

void Runtime::launch(int rank, const Shape& shape,
                     const std::function<void(const simt::ThreadBlock&)>& body) {
    Barrier& end = kernel_ends_[rank];
    end.name = "kernel end";
    end.expected += std::size_t{shape.blocks} * shape.threads;
    end.ends_kernel = true;
    for (unsigned b = 0; b < shape.blocks; ++b) {
        simt::HostBlock& block = blocks_.emplace_back();
        block.group_index = dim3(b);
        block.grid_dim = dim3(shape.blocks);
        block.size = shape.threads;
        if (shape.shared_bytes != 0) {
            block.shared = allocate(1, shape.shared_bytes, fmt::format("shared{}", b), rank);
        }
        Barrier& whole = barriers_.emplace_back();
        whole.name = "block.sync";
        whole.expected = shape.threads;
        block.sync = [](void* barrier, bool vote) {
            return running->pass_barrier(*static_cast<Barrier*>(barrier), vote);
        };
        block.sync_state = &whole;
        auto& warps = warps_.emplace_back((shape.threads + simt::kWarpSize - 1) / simt::kWarpSize);
        for (unsigned w = 0; w < warps.size(); ++w) {
            Barrier& warp = barriers_.emplace_back();
            warp.name = "warp.sync";
            warp.expected = std::min(simt::kWarpSize, shape.threads - w * simt::kWarpSize);
            warps[w].sync = [](void* barrier) {
                running->pass_barrier(*static_cast<Barrier*>(barrier), false);
            };
            warps[w].state = &warp;
        }
        block.warps = warps.data();
        auto& named = named_barriers_.emplace_back();
        block.named_state = &named;
        block.named_sync = [](void* state, unsigned number, unsigned threads) {
            Barrier& barrier =
                (*static_cast<std::array<Barrier, simt::kNamedBarriers>*>(state)).at(number);
            barrier.name = "named sync";
            barrier.expected = threads;
            running->pass_barrier(barrier, false);
        };
        for (unsigned t = 0; t < shape.threads; ++t) {
            if (thread_count_ == kMostThreads) {
                throw std::runtime_error(fmt::format("more than {} threads", kMostThreads));
            }
            Thread& thread = threads_[thread_count_++];
            if (thread.stack == nullptr) {
                thread.stack = {new char[kStackBytes], [](char* stack) { delete[] stack; }};
            }
            thread.rank = rank;
            thread.block = static_cast<int>(b);
            thread.number = static_cast<int>(t);
            thread.state = State::kReady;
            thread.mind = {};
            thread.mind.now.step(number_of(thread));
            thread.call = nullptr;
            thread.handle = simt::ThreadBlock(&block, t);
            thread.body = [body, &thread] { body(thread.handle); };
            // As symm_explore_switch leaves a stack: six registers, and the address to continue at.
            auto** top = reinterpret_cast<void**>(
                             reinterpret_cast<std::uintptr_t>(thread.stack.get() + kStackBytes) &
                             ~std::uintptr_t{15}) -
                         8;
            std::fill(top, top + 8, nullptr);
            top[6] = reinterpret_cast<void*>(&live);
            thread.sp = top;
        }
    }
}

bool Runtime::pass_barrier(Barrier& barrier, bool vote) {
    const Inside inside(*this);
    log(barrier.name.c_str(), -1, 0, barrier.passed, nullptr);
    barrier.vote |= vote;
    barrier.waiting.push_back(number_of(*current_));
    if (barrier.waiting.size() < barrier.expected) {
        current_->state = State::kAtBarrier;
        symm_explore_switch(&current_->sp, scheduler_sp_);
        return barrier.result;
    }
    const bool fences = barrier.ends_kernel && options_.kernel_end == KernelEnd::kFence;
    const bool releases = barrier.ends_kernel && options_.kernel_end != KernelEnd::kNothing;
    Knowledge all;
    Set past;
    for (const int i : barrier.waiting) {
        const Mind& mind = threads_[static_cast<std::size_t>(i)].mind;
        all.join(mind.now);
        if (fences) {
            all.join(mind.acquirable);
        }
        past.insert(mind.past);
    }
    for (const int i : barrier.waiting) {
        Thread& thread = threads_[static_cast<std::size_t>(i)];
        thread.mind.now = all;
        thread.mind.past = past;
        thread.mind.now.step(i);
        if (releases) {
            thread.mind.released = all;
        }
        thread.state = State::kReady;
    }
    barrier.waiting.clear();
    ++barrier.passed;
    barrier.result = barrier.vote;
    barrier.vote = false;
    return barrier.result;
}

}  // namespace symm::explore
