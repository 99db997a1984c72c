// Where the scene's code enters the explorer: it meets other threads, waits, or fails. Its accesses
// enter in instrumentation.cpp.

#include <fmt/core.h>

#include <cstring>

#include "tools/explore/exploration.hpp"

namespace symm::explore {

bool meet(MeetingPoint& point, bool vote = false) {
    const Exploration::Inside inside(*running);
    return inside.schedule().meet(inside.thread, point, vote);
}
bool SceneBlock::sync(bool vote) {
    return meet(whole, vote);
}
void SceneBlock::sync_warp(unsigned warp) {
    meet(warps[warp]);
}
void SceneBlock::exchange_warp(unsigned warp) {
    meet(exchanges[warp]);
}
void SceneBlock::sync_named(unsigned number, unsigned threads) {
    MeetingPoint& point = named.try_emplace(number, MeetingPoint{"named sync"}).first->second;
    if (!point.waiting.empty() && point.expected != threads) {
        running->fail(fmt::format("threads wait at the named barrier {} for {} threads, and for {}",
                                  number, point.expected, threads));
    }
    point.expected = threads;
    meet(point);
}
void SceneBlock::wait_for_predecessor() {
    const Exploration::Inside inside(*running);
    inside.streams().wait_for_predecessor(inside.thread);
}
void SceneBlock::launch_dependents() {
    const Exploration::Inside inside(*running);
    inside.streams().launch_dependents(inside.thread);
}
simt::MulticastCopies SceneBlock::copies_of(const void* address, simt::SwitchAccess access) {
    const simt::MulticastCopies copies = [&] {
        const Exploration::Inside inside(*running);
        return running->copies_of(inside.thread, address, access);
    }();
    if (copies.count == 0) {
        running->fail(fmt::format("{} accesses {} by a multimem instruction: no multicast address",
                                  running->thread().name(), address));
    }
    return copies;
}
void kernel_end() {
    MeetingPoint* const end = running->thread().scene_block->kernel_end;
    if (end == nullptr) {
        fail("a launch of a stream is one kernel: it has no kernel_end()");
    }
    meet(*end);
}
void leave_block() {
    const Exploration::Inside inside(*running);
    inside.schedule().leave_block(inside.thread);
}
const simt::ThreadBlock& this_block() {
    return running->thread().handle;
}
dim3 block_dim() {
    return running->thread().scene_block->dim;
}
void fail(const std::string& why) {
    running->fail(why);
}
void unseen(const std::function<void()>& code) {
    const Exploration::Inside inside(*running);
    code();
}
void load_result(const void* address, std::size_t bytes, void* to) {
    const Exploration::Inside inside(*running);
    inside.accesses().load_result(inside.thread, const_cast<void*>(address), bytes,
                                  __builtin_return_address(0));
    std::memcpy(to, address, bytes);
}

}  // namespace symm::explore

namespace symm::simt {

Awaited await(const std::function<bool()>& poll, const std::uint32_t* gave_up) {
    return explore::running->await(poll, gave_up);
}
void through_multicast(bool begins) {
    const explore::Exploration::Inside inside(*explore::running);
    inside.thread.through_multicast = begins;
}
void explored_fence_alias() {
    const explore::Exploration::Inside inside(*explore::running);
    inside.thread.view.now.fence_alias();
    inside.thread.view.now.step(inside.thread.index);
}
void acquire_both() {
    const explore::Exploration::Inside inside(*explore::running);
    inside.accesses().acquire_both(inside.thread);
}

}  // namespace symm::simt
