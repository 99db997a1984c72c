#pragma once
/// \file
/// The memory of a scene.
///
/// 1. It is one range of addresses. Each execution zeroes it, and allocates from its start.
/// 2. The `__shared__` variables of a program (cuda_kernel.hpp) have one place each, outside of
///    this range. Each block has a copy of them in the range.
/// 3. Before a thread runs, bring() exchanges what is at these places for its block's copy.
/// 4. The model and the log know a byte of such a variable by its address in the copy.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

// The section of all __shared__ variables (cuda_kernel.hpp), if there are any.
extern "C" [[gnu::weak]] char __start_symm_shared, __stop_symm_shared;  // NOLINT: the linker's

namespace symm::explore {

constexpr std::size_t kSceneBytes = std::size_t{64} << 20;

class SceneMemory {
public:
    SceneMemory() {
        if (begin_ == MAP_FAILED) {
            throw std::runtime_error("no memory for a scene");
        }
    }
    ~SceneMemory() { ::munmap(begin_, kSceneBytes); }
    SceneMemory(const SceneMemory&) = delete;

    void clear() {
        std::memset(begin_, 0, used_);
        used_ = 0;
        copy_ = nullptr;
    }
    /// Aligned to 128 bytes. Throws std::runtime_error if the scene becomes too large.
    char* allocate(std::size_t bytes) {
        used_ = (used_ + 127) / 128 * 128;
        if (bytes > kSceneBytes - used_) {
            throw std::runtime_error("the scene's memory is too large");
        }
        used_ += bytes;
        return begin_ + used_ - bytes;
    }
    /// Brings the `__shared__` variables of the block with this copy to their places.
    void bring(char* copy) {
        if (static_bytes_ == 0 || copy_ == copy) {
            return;
        }
        if (copy_ != nullptr) {
            std::memcpy(copy_, statics_, static_bytes_);
        }
        std::memcpy(statics_, copy, static_bytes_);
        copy_ = copy;
    }

    std::uintptr_t origin() const { return reinterpret_cast<std::uintptr_t>(begin_); }
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
    // Wished for at one place, whose low half is no number of a scene's.
    char* const begin_ = static_cast<char*>(
        ::mmap(reinterpret_cast<void*>(0x5a5a'5a000000), kSceneBytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    std::size_t used_ = 0;
    char* const statics_ = &__start_symm_shared;  ///< The places of all `__shared__` variables.
    const std::size_t static_bytes_ =
        static_cast<std::size_t>(&__stop_symm_shared - &__start_symm_shared);
    char* copy_ = nullptr;  ///< The one that is at these places.
};

}  // namespace symm::explore
