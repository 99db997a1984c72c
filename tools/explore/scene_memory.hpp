#pragma once
/// \file
/// The memory of a scene, and what is known of each of its bytes.
///
/// 1. It is one range of addresses. Each execution allocates from its start, with a gap around each
///    allocation: an access there is a fault.
/// 2. The `__shared__` variables of a program (cuda_kernel.hpp) have one place each, outside of
///    this range. Each block has a copy of them in the range.
/// 3. Before a thread runs, bring() exchanges what is at these places for its block's copy.
/// 4. The model and the log know a byte of such a variable by its address in the copy.
/// 5. A second range has each byte as the accesses that the explorer has seen left it. Where the
///    first one differs, the byte was written by an access that it does not see.
/// 6. A byte that nothing has written may not be read.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

// The section of all __shared__ variables (cuda_kernel.hpp), if there are any.
extern "C" [[gnu::weak]] char __start_symm_shared, __stop_symm_shared;  // NOLINT: the linker's

namespace symm::explore {

/// In each byte that nothing has written.
constexpr char kUnwritten = static_cast<char>(0xd5);

constexpr std::size_t kSceneBytes = std::size_t{64} << 20;

/// What is wrong with an access of the scene's memory.
enum class MemoryFault { kNone, kOutside, kMulticast, kNeverWritten, kChangedUnseen };

class SceneMemory {
public:
    /// Throws std::runtime_error.
    SceneMemory();
    ~SceneMemory();
    SceneMemory(const SceneMemory&) = delete;

    void clear();
    /// Aligned to 128 bytes. Throws std::runtime_error if the scene becomes too large.
    char* allocate(std::size_t bytes, bool zeroed);
    /// Multicast addresses, which have no memory of their own.
    char* allocate_multicast(std::size_t bytes);
    /// The setup of the scene has stored these bytes, and has ended.
    void set_up(const void* address, std::size_t bytes);
    void end_setup();
    /// Nothing has written these bytes any more.
    void forget(const char* begin, std::size_t bytes);
    /// Brings the `__shared__` variables of the block with this copy to their places.
    void bring(char* copy);

    // Addresses are those that the model knows.
    MemoryFault fault_of(std::uintptr_t address, std::size_t bytes, bool store) const;
    /// A plain store comes next. It has come when settle() is called.
    void will_store(std::uintptr_t address, std::size_t bytes) { stored_ = {address, bytes}; }
    void settle() {
        if (stored_.second != 0) {
            stored(stored_.first, stored_.second);
            stored_ = {};
        }
    }
    /// A store that the explorer has seen has changed these bytes.
    void stored(std::uintptr_t address, std::size_t bytes);
    /// A byte that an access has changed which the explorer does not see, or 0.
    std::uintptr_t changed_unseen() const;
    /// The allocation that begins last at or before this address: its begin and size.
    std::pair<std::uintptr_t, std::size_t> allocation_at(std::uintptr_t address) const;

    /// From now on hide() hides, until it has hidden so many bytes: these bits of each differ.
    void begin_hiding(std::size_t bytes, char mask) {
        to_hide_ = bytes;
        mask_ = mask;
    }
    /// While the scene's code runs, all bytes but those shown are others: an access that the
    /// explorer does not see loads these.
    void hide();
    /// All bytes are as they were, and none is shown by itself.
    void reveal();
    /// The access that comes next is of these.
    void show(const void* address, std::size_t bytes) {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        if (to_hide_ > used_ &&
            (holds(at) || at - reinterpret_cast<std::uintptr_t>(statics_) < static_bytes_)) {
            shown_.emplace_back(static_cast<char*>(const_cast<void*>(address)), bytes);
        }
    }

    std::uintptr_t origin() const { return reinterpret_cast<std::uintptr_t>(begin_); }
    /// The first allocation of an execution.
    std::uintptr_t first() const { return reinterpret_cast<std::uintptr_t>(allocations_[0].begin); }
    std::size_t used() const { return used_; }
    std::size_t static_bytes() const { return static_bytes_; }
    bool holds(std::uintptr_t address) const { return address - origin() < kSceneBytes; }
    /// The address by which the model knows a byte.
    std::uintptr_t modelled(const volatile void* address) const {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        const std::uintptr_t in_statics = at - reinterpret_cast<std::uintptr_t>(statics_);
        return in_statics < static_bytes_ ? reinterpret_cast<std::uintptr_t>(copy_) + in_statics
                                          : at;
    }
    /// Where the bytes of such an address are now.
    char* real_of(std::uintptr_t address) const {
        const std::uintptr_t in_copy = address - reinterpret_cast<std::uintptr_t>(copy_);
        return copy_ != nullptr && in_copy < static_bytes_ ? statics_ + in_copy
                                                           : reinterpret_cast<char*>(address);
    }

private:
    char* reserve(std::size_t bytes);
    void flip() const;

    struct Range {
        char* begin;
        std::size_t bytes;
    };
    std::size_t offset(std::uintptr_t address) const { return address - origin(); }

    char* const begin_;
    char* const known_;  ///< Each byte after the last store that the explorer has seen,
    char* const state_;  ///< and whether it is allocated, and written.
    std::size_t used_ = 0;
    std::size_t to_hide_ = 0;
    char mask_ = 0;
    bool is_hidden_ = false;
    std::vector<std::span<char>> shown_;
    bool is_overrun_ = false;              ///< By the setup.
    volatile bool is_allocating_ = false;  ///< Read by set_up(), which memset() is made to call.
    std::vector<Range> allocations_;
    std::pair<std::uintptr_t, std::size_t> stored_{};  ///< By the plain store that comes next.
    char* const statics_ = &__start_symm_shared;  ///< The places of all `__shared__` variables.
    const std::size_t static_bytes_ =
        static_cast<std::size_t>(&__stop_symm_shared - &__start_symm_shared);
    char* copy_ = nullptr;  ///< The one that is at these places.
};

}  // namespace symm::explore
