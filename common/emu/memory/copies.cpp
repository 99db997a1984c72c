// Copies and fills.

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>

#include "common/emu/emulator.hpp"
#include "common/emu/memory/access.hpp"
#include "common/emu/memory/fault_guard.hpp"
#include "common/emu/memory/lossy.hpp"
#include "common/emu/streams/graphs.hpp"
#include "common/sys/pages.hpp"

namespace symm::emu {
namespace {

// In pieces: ThreadSanitizer checks a memcpy much faster than a loop.
template <class Value>
void write(char* to, Value value, std::size_t bytes) {
    std::array<Value, 4096 / sizeof(Value)> piece;
    piece.fill(value);
    for (std::size_t done = 0; done < bytes; done += sizeof(piece)) {
        std::memcpy(to + done, piece.data(), std::min(sizeof(piece), bytes - done));
    }
}

// Whether pages that are returned to the system become zero: qemu ignores MADV_REMOVE.
bool can_remove_pages() {
    void* const page =
        ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return false;
    }
    auto* const word = static_cast<volatile int*>(page);
    *word = 1;
    const bool removed = ::madvise(page, page_bytes(), MADV_REMOVE) == 0 && *word == 0;
    ::munmap(page, page_bytes());
    return removed;
}

// Large memory becomes zero at once when its pages are returned to the system. Its first bytes are
// written all the same: kernels poll words there, and ThreadSanitizer should see which thread wrote
// them.
template <class Value>
void write_fast(char* to, Value value, std::size_t bytes) {
    constexpr std::size_t kFirst = 64 * 1024;
    const std::size_t pages = bytes / page_bytes() * page_bytes();
    static const bool can_remove = can_remove_pages();
    if (value == 0 && bytes >= kGranularity && can_remove &&
        ::madvise(to + kFirst, pages - kFirst, MADV_REMOVE) == 0) {
        write(to + pages, value, bytes - pages);
        bytes = kFirst;
    }
    write(to, value, bytes);
}

// Queues `work`, which writes to memory of `owner`. If that memory is unmapped before the stream
// runs the work, that is an illegal access, and the context is lost, as on a GPU.
void queue(Stream& stream, int owner, std::function<void()> work) {
    Context& context = stream.context();
    if (loses_copies(context.device, owner)) {
        return;
    }
    submit(stream, [&context, work = std::move(work)] {
        const WorkScope scope(emulator().copies);
        if (const auto address = run_guarded(work)) {
            lose(context, CUDA_ERROR_ILLEGAL_ADDRESS,
                 Text("a copy or fill touched {:#x}, which is no longer accessible", *address));
        }
    });
}

void finish(Stream& stream) {
    stream.finish();
    stream.context().check_state();
}

void copy(Stream& stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    if (bytes == 0) {
        return;
    }
    const auto target = find_owner(to, bytes, true), source = find_owner(from, bytes, false);
    refuse_if(to == 0 || from == 0);
    // The caller may use pageable memory again once the call returns. So a pageable source is read,
    // and a pageable target is written, before that.
    const bool now = !is_capturing(stream);
    std::function<void()> work = [to, from, bytes] { std::memmove(at(to), at(from), bytes); };
    // A word arrives whole and after earlier copies of its stream, even for a kernel that polls.
    if (bytes == sizeof(std::uint32_t) && (to | from) % bytes == 0) {
        work = [to, from] {
            auto* const word = static_cast<std::uint32_t*>(at(from));
            __atomic_store_n(static_cast<std::uint32_t*>(at(to)),
                             __atomic_load_n(word, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
        };
    }
    if (now && !source) {
        const std::shared_ptr<char[]> staged(new char[bytes]);
        std::memcpy(staged.get(), at(from), bytes);
        work = [to, staged, bytes] { std::memcpy(at(to), staged.get(), bytes); };
    }
    queue(stream, target.value_or(kHost), std::move(work));
    if (now && !target) {
        finish(stream);
    }
}

// Synchronous copies. `device` is the end that must be memory of the driver.
void copy_and_wait(CUdeviceptr to, CUdeviceptr from, CUdeviceptr device, std::size_t bytes) {
    const auto stream = find_stream(nullptr);
    refuse_if(bytes > 0 && !find_owner(device, bytes, false));
    copy(*stream, to, from, bytes);
    // A real driver also returns once it has read the pageable source, before the data arrives.
    if (to != device || bytes == 0 || find_owner(from, bytes, false)) {
        finish(*stream);
    }
}

template <class Value>
void fill(CUdeviceptr to, Value value, std::size_t count, CUstream handle) {
    const auto stream = find_stream(handle);
    if (count == 0) {
        return;
    }
    refuse_if(to % sizeof(Value) != 0 ||
              count > std::numeric_limits<std::size_t>::max() / sizeof(Value));
    const std::size_t bytes = count * sizeof(Value);
    const auto owner = find_owner(to, bytes, true);
    refuse_if(!owner);
    queue(*stream, *owner,
          [to, value, bytes] { write_fast(static_cast<char*>(at(to)), value, bytes); });
}

}  // namespace

void cuMemcpyHtoD(CUdeviceptr destination, const void* source, size_t bytes) {
    copy_and_wait(destination, reinterpret_cast<CUdeviceptr>(source), destination, bytes);
}

void cuMemcpyDtoH(void* destination, CUdeviceptr source, size_t bytes) {
    copy_and_wait(reinterpret_cast<CUdeviceptr>(destination), source, source, bytes);
}

void cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream handle) {
    copy(*find_stream(handle), destination, source, bytes);
}

void cuMemsetD8Async(CUdeviceptr destination, unsigned char value, size_t count, CUstream handle) {
    fill(destination, value, count, handle);
}

void cuMemsetD32Async(CUdeviceptr destination, unsigned int value, size_t count, CUstream handle) {
    fill(destination, value, count, handle);
}

}  // namespace symm::emu
