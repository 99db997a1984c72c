#include "tools/explore/scene_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>

namespace symm::explore {
namespace {

/// At least so many bytes around each allocation belong to none.
constexpr std::size_t kGap = 512;

enum State : char { kNowhere, kMulticast, kAllocated, kWritten };

char* map(std::uintptr_t where) {
    void* const mapped = ::mmap(reinterpret_cast<void*>(where), kSceneBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        throw std::runtime_error("no memory for a scene");
    }
    return static_cast<char*>(mapped);
}

}  // namespace

// The scene's is wished for at one place, whose low half is no number of a scene's.
SceneMemory::SceneMemory() : begin_(map(0x5a5a'5a000000)), known_(map(0)), state_(map(0)) {}

SceneMemory::~SceneMemory() {
    for (char* const mapped : {begin_, known_, state_}) {
        ::munmap(mapped, kSceneBytes);
    }
}

void SceneMemory::clear() {
    std::memset(state_, kNowhere, used_);
    used_ = 0;
    allocations_.clear();
    stored_ = {};
    copy_ = nullptr;
}

char* SceneMemory::reserve(std::size_t bytes) {
    const std::size_t at = (used_ + kGap + 127) / 128 * 128;
    if (at > kSceneBytes || bytes > kSceneBytes - at) {
        throw std::runtime_error("the scene's memory is too large");
    }
    used_ = at + bytes;
    return begin_ + at;
}

char* SceneMemory::allocate(std::size_t bytes, bool zeroed) {
    char* const begin = reserve(bytes);
    is_allocating_ = true;
    std::memset(begin, zeroed ? 0 : kUnwritten, bytes);
    is_allocating_ = false;
    std::memset(state_ + (begin - begin_), zeroed ? kWritten : kAllocated, bytes);
    return allocations_.emplace_back(Range{begin, bytes}).begin;
}

char* SceneMemory::allocate_multicast(std::size_t bytes) {
    char* const begin = reserve(bytes);
    std::memset(state_ + (begin - begin_), kMulticast, bytes);
    return begin;
}

void SceneMemory::set_up(const void* address, std::size_t bytes) {
    const std::size_t at = offset(reinterpret_cast<std::uintptr_t>(address));
    if (at >= kSceneBytes || is_allocating_) {
        return;
    }
    for (char& state : std::span(state_ + at, bytes)) {
        if (state == kNowhere || state == kMulticast) {
            is_overrun_ = true;
            return;
        }
        state = kWritten;
    }
}

void SceneMemory::forget(const char* begin, std::size_t bytes) {
    std::memset(state_ + (begin - begin_), kAllocated, bytes);
}

void SceneMemory::end_setup() {
    if (is_overrun_) {
        throw std::runtime_error("the setup stores beyond the end of an allocation");
    }
    for (const auto& [begin, bytes] : allocations_) {
        std::memcpy(known_ + (begin - begin_), begin, bytes);
    }
}

void SceneMemory::flip() const {
    const auto flip = [mask = mask_](std::span<char> bytes) {
        for (char& byte : bytes) {
            byte ^= mask;
        }
    };
    for (const auto& [begin, bytes] : allocations_) {
        flip({begin, bytes});
    }
    if (copy_ != nullptr) {
        flip({statics_, static_bytes_});
    }
    for (const std::span<char>& shown : shown_) {
        flip(shown);
    }
}

void SceneMemory::hide() {
    if (to_hide_ > used_) {
        to_hide_ -= used_;
        is_hidden_ = true;
        flip();
    }
}

void SceneMemory::reveal() {
    if (is_hidden_) {
        is_hidden_ = false;
        flip();
    }
    shown_.clear();
}

void SceneMemory::bring(char* copy) {
    if (static_bytes_ == 0 || copy_ == copy) {
        return;
    }
    if (copy_ != nullptr) {
        std::memcpy(copy_, statics_, static_bytes_);
    }
    std::memcpy(statics_, copy, static_bytes_);
    copy_ = copy;
}

MemoryFault SceneMemory::fault_of(std::uintptr_t address, std::size_t bytes, bool store) const {
    if (bytes > kSceneBytes || offset(address) > kSceneBytes - bytes) {
        return MemoryFault::kOutside;
    }
    const char* const state = state_ + offset(address);
    const char least = *std::min_element(state, state + bytes);
    if (least == kNowhere) {
        return MemoryFault::kOutside;
    }
    if (least == kMulticast) {
        return MemoryFault::kMulticast;
    }
    if (std::memcmp(known_ + offset(address), real_of(address), bytes) != 0) {
        return MemoryFault::kChangedUnseen;
    }
    return least == kAllocated && !store ? MemoryFault::kNeverWritten : MemoryFault::kNone;
}

void SceneMemory::stored(std::uintptr_t address, std::size_t bytes) {
    std::memcpy(known_ + offset(address), real_of(address), bytes);
    std::memset(state_ + offset(address), kWritten, bytes);
}

std::uintptr_t SceneMemory::changed_unseen() const {
    for (const auto& [begin, bytes] : allocations_) {
        const char* const known = known_ + (begin - begin_);
        const auto address = reinterpret_cast<std::uintptr_t>(begin);
        const char* const real = real_of(address);
        if (std::memcmp(known, real, bytes) != 0) {
            return address + static_cast<std::size_t>(
                                 std::mismatch(known, known + bytes, real).first - known);
        }
    }
    return 0;
}

std::pair<std::uintptr_t, std::size_t> SceneMemory::allocation_at(std::uintptr_t address) const {
    const auto after = std::ranges::find_if(allocations_, [&](const Range& one) {
        return reinterpret_cast<std::uintptr_t>(one.begin) > address;
    });
    if (after == allocations_.begin()) {
        return {};
    }
    const Range& last = *(after - 1);
    return {reinterpret_cast<std::uintptr_t>(last.begin), last.bytes};
}

}  // namespace symm::explore
