// operator new and delete: what a thread has freed goes to no other one in the same execution.

#include <malloc.h>

#include <cstdlib>
#include <new>

#include "tools/explore/exploration.hpp"

namespace symm::explore {
namespace {

void* allocated(std::size_t size) {
    void* const memory = std::malloc(size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

void* allocated(std::size_t size, std::align_val_t alignment) {
    void* memory = nullptr;
    if (::posix_memalign(&memory, static_cast<std::size_t>(alignment), size) != 0) {
        throw std::bad_alloc();
    }
    return memory;
}

void give_back(void* memory) {
    if (memory != nullptr && is_running()) {
        const Exploration::Inside inside(*running);
        inside.accesses().keep_freed(inside.thread, memory, ::malloc_usable_size(memory));
        return;
    }
    std::free(memory);
}

}  // namespace
}  // namespace symm::explore

using symm::explore::allocated;
using symm::explore::give_back;

void* operator new(std::size_t size) {
    return allocated(size);
}
void* operator new[](std::size_t size) {
    return allocated(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    return allocated(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
    return allocated(size, alignment);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    give_back(memory);
}
void operator delete(void* memory) noexcept {
    give_back(memory);
}
void operator delete[](void* memory) noexcept {
    give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    give_back(memory);
}
