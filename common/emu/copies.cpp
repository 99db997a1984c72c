// Copies and fills, in a stream's order.

#include <cstring>
#include <limits>
#include <memory>

#include "common/emu/access.hpp"
#include "common/emu/emulated_driver.hpp"
#include "common/emu/fault_guard.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/graphs.hpp"
#include "common/emu/log.hpp"
#include "common/emu/lossy.hpp"
#include "common/emu/streams.hpp"

namespace symm::emu {
namespace {

void* at(CUdeviceptr pointer) {
    return reinterpret_cast<void*>(pointer);
}

/// Queues `work`, which writes to memory of `owner`. The memory was there when this was called; it
/// may have been unmapped when its turn comes, which a GPU answers with an illegal access.
template <class Work>
CUresult queue(const std::shared_ptr<Stream>& stream, int owner, Work work) {
    Context& context = stream->context();
    if (loses_copies(context.device, owner)) {
        return CUDA_SUCCESS;  // claimed to have been written, and was not
    }
    Operation operation;
    operation.context = &context;
    operation.run = [&context, work = std::move(work)] {
        const WorkScope scope(WorkScope::kCopy);
        std::uintptr_t address = 0;
        if (!run_guarded(work, address)) {
            lose(context, CUDA_ERROR_ILLEGAL_ADDRESS,
                 Text("a copy or fill touched {:#x}, which is no longer accessible", address));
        }
    };
    return submit(stream, std::move(operation));
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
    // Pageable memory may be reused once the call returns: it is read now, and written before the
    // end.
    const bool now = !is_capturing(*stream);
    if (now && source.range == Range::kUnknown) {
        const std::shared_ptr<char[]> staged(new char[bytes]);
        std::memcpy(staged.get(), at(from), bytes);
        const CUresult result = queue(stream, target.owner, [to, staged, bytes] {
            std::memcpy(at(to), staged.get(), bytes);
        });
        if (result != CUDA_SUCCESS) {
            return result;
        }
    } else {
        const CUresult result = queue(stream, target.owner,
                                      [to, from, bytes] { std::memmove(at(to), at(from), bytes); });
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    if (now && target.range == Range::kUnknown) {
        stream->finish();
        return stream->context().lost.load(std::memory_order_relaxed);
    }
    return CUDA_SUCCESS;
}

// The synchronous copies: `device` has to be memory the driver knows.
CUresult copy_and_wait(CUdeviceptr to, CUdeviceptr from, CUdeviceptr device, std::size_t bytes) {
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(nullptr, stream));
    if (bytes > 0 && find_range(device, bytes, false).range == Range::kUnknown) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    SYMM_EMU_TRY(copy(stream, to, from, bytes));
    // As a real driver: over once the pageable source has been staged, not once it has arrived.
    if (to == device && find_range(from, bytes, false).range == Range::kUnknown) {
        return CUDA_SUCCESS;
    }
    stream->finish();
    return stream->context().lost.load(std::memory_order_relaxed);
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
    if (target.range != Range::kDevice && target.range != Range::kHost) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return queue(stream, target.owner, [to, value, count] {
        auto* values = static_cast<Value*>(at(to));
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = value;
        }
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
