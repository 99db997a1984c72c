// Copies and fills.

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>

#include "common/emu/access.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/fault_guard.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/graphs.hpp"
#include "common/emu/log.hpp"
#include "common/emu/lossy.hpp"
#include "common/emu/streams.hpp"

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

// Large memory becomes zero at once when its pages are returned to the system. Its first bytes are
// written all the same: kernels poll words there, and ThreadSanitizer should see which thread wrote
// them.
template <class Value>
void write_fast(char* to, Value value, std::size_t bytes) {
    constexpr std::size_t kFirst = 64 * 1024;
    const std::size_t pages = bytes / 4096 * 4096;
    if (value == 0 && bytes >= kGranularity &&
        ::madvise(to + kFirst, pages - kFirst, MADV_REMOVE) == 0) {
        write(to + pages, value, bytes - pages);
        bytes = kFirst;
    }
    write(to, value, bytes);
}

// Queues `work`, which writes to memory of `owner`. If that memory is unmapped before the stream
// runs the work, that is an illegal access, and the context is lost, as on a GPU.
CUresult queue(const std::shared_ptr<Stream>& stream, int owner, std::function<void()> work) {
    Context& context = stream->context();
    if (loses_copies(context.device, owner)) {
        return CUDA_SUCCESS;
    }
    return submit(stream,
                  {&context, [&context, work = std::move(work)] {
                       const WorkScope scope(emulator().copies);
                       if (const auto address = run_guarded(work)) {
                           lose(context, CUDA_ERROR_ILLEGAL_ADDRESS,
                                Text("a copy or fill touched {:#x}, which is no longer accessible",
                                     *address));
                       }
                   }});
}

CUresult copy(const std::shared_ptr<Stream>& stream, CUdeviceptr to, CUdeviceptr from,
              std::size_t bytes) {
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    const RangeFound target = find_range(to, bytes, true);
    const RangeFound source = find_range(from, bytes, false);
    if (to == 0 || from == 0 || target.range == Range::kForbidden ||
        source.range == Range::kForbidden) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // The caller may use pageable memory again once the call returns. So a pageable source is read,
    // and a pageable target is written, before that.
    const bool now = !is_capturing(*stream);
    std::function<void()> work = [to, from, bytes] { std::memmove(at(to), at(from), bytes); };
    // A word arrives whole and after earlier copies of its stream, even for a kernel that polls.
    if (bytes == sizeof(std::uint32_t) && (to | from) % bytes == 0) {
        work = [to, from] {
            auto* const source = static_cast<std::uint32_t*>(at(from));
            __atomic_store_n(static_cast<std::uint32_t*>(at(to)),
                             __atomic_load_n(source, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
        };
    }
    if (now && source.range == Range::kUnknown) {
        const std::shared_ptr<char[]> staged(new char[bytes]);
        std::memcpy(staged.get(), at(from), bytes);
        work = [to, staged, bytes] { std::memcpy(at(to), staged.get(), bytes); };
    }
    SYMM_EMU_TRY(queue(stream, target.owner, std::move(work)));
    if (now && target.range == Range::kUnknown) {
        stream->finish();
        return stream->context().state();
    }
    return CUDA_SUCCESS;
}

// Synchronous copies. `device` is the end that must be memory of the driver.
CUresult copy_and_wait(CUdeviceptr to, CUdeviceptr from, CUdeviceptr device, std::size_t bytes) {
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(nullptr, stream));
    if (bytes > 0 && find_range(device, bytes, false).range == Range::kUnknown) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    SYMM_EMU_TRY(copy(stream, to, from, bytes));
    // A real driver also returns once it has read the pageable source, before the data arrives.
    if (to == device && find_range(from, bytes, false).range == Range::kUnknown) {
        return CUDA_SUCCESS;
    }
    stream->finish();
    return stream->context().state();
}

template <class Value>
CUresult fill(CUdeviceptr to, Value value, std::size_t count, CUstream handle) {
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(handle, stream));
    if (count == 0) {
        return CUDA_SUCCESS;
    }
    if (to % sizeof(Value) != 0 ||
        count > std::numeric_limits<std::size_t>::max() / sizeof(Value)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const RangeFound target = find_range(to, count * sizeof(Value), true);
    if (target.range != Range::kKnown) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return queue(stream, target.owner, [to, value, bytes = count * sizeof(Value)] {
        write_fast(static_cast<char*>(at(to)), value, bytes);
    });
}

}  // namespace

CUresult cuMemcpyHtoD(CUdeviceptr destination, const void* source, size_t bytes) {
    SYMM_EMU_ENTER(cuMemcpyHtoD);
    return copy_and_wait(destination, reinterpret_cast<CUdeviceptr>(source), destination, bytes);
}

CUresult cuMemcpyDtoH(void* destination, CUdeviceptr source, size_t bytes) {
    SYMM_EMU_ENTER(cuMemcpyDtoH);
    return copy_and_wait(reinterpret_cast<CUdeviceptr>(destination), source, source, bytes);
}

CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream handle) {
    SYMM_EMU_ENTER(cuMemcpyAsync);
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(handle, stream));
    return copy(stream, destination, source, bytes);
}

CUresult cuMemsetD8Async(CUdeviceptr destination, unsigned char value, size_t count,
                         CUstream handle) {
    SYMM_EMU_ENTER(cuMemsetD8Async);
    return fill(destination, value, count, handle);
}

CUresult cuMemsetD32Async(CUdeviceptr destination, unsigned int value, size_t count,
                          CUstream handle) {
    SYMM_EMU_ENTER(cuMemsetD32Async);
    return fill(destination, value, count, handle);
}

}  // namespace symm::emu
