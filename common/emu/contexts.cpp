#include "common/emu/contexts.hpp"

#include <mutex>
#include <vector>

#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/events.hpp"
#include "common/emu/log.hpp"
#include "common/emu/plain_memory.hpp"
#include "common/emu/streams.hpp"

namespace symm::emu {
namespace {

// The calling thread's stack of contexts. Plain data: owners with static storage call the driver
// after the main thread's destructors have run.
struct CurrentStack {
    static constexpr int kDeepest = 64;
    Context* contexts[kDeepest];
    int depth;

    Context* top() const { return depth > 0 ? contexts[depth - 1] : nullptr; }
};
thread_local CurrentStack current{};

// With the emulator's mutex held.
Context* find_context(const Emulator& e, CUcontext handle) {
    auto* context = reinterpret_cast<Context*>(handle);
    return e.contexts.contains(context) ? context : nullptr;
}

void bring_to_life(Emulator& e, Context& context) {
    if (context.alive) {
        return;  // a primary context, retained again before its release was done
    }
    context.default_stream = new_stream(context, Stream::Kind::kDefault);
    e.contexts.insert(&context);
    context.lost = CUDA_SUCCESS;
    context.alive = true;
}

// Takes with it what was made in it. Work that is queued finishes first.
void end_life(Context& context) {
    finish_all_work(context);
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    if (!context.alive || context.retained > 0) {
        return;  // another thread destroyed it, or retained it again
    }
    context.alive = false;
    e.contexts.erase(&context);
    context.default_stream->close();
    context.default_stream.reset();
    std::erase_if(e.streams, [&](const auto& entry) {
        const bool mine = &entry.second->context() == &context;
        if (mine) {
            entry.second->close();
        }
        return mine;
    });
    std::erase_if(e.events, [&](const auto& entry) { return &entry.second->context == &context; });
    for (auto one = e.plain.begin(); one != e.plain.end();) {
        const auto next = std::next(one);
        if (one->second.context == context.handle()) {
            drop_plain(e, one->first);
        }
        one = next;
    }
}

// Puts the context on top of the stack, or in the place of what is there.
enum class Put { kOnTop, kInsteadOfTop };
CUresult make_current(CUcontext handle, Put put) {
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    Context* context = find_context(e, handle);
    if (context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (put == Put::kOnTop || current.depth == 0) {
        if (current.depth == CurrentStack::kDeepest) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        ++current.depth;
    }
    current.contexts[current.depth - 1] = context;
    return CUDA_SUCCESS;
}

CUresult create(CUcontext* handle, unsigned flags, CUdevice device) {
    if (handle == nullptr || (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    Emulator& e = emulator();
    {
        const WriteLock lock(e.mutex);
        static std::vector<std::unique_ptr<Context>>& all =
            *new std::vector<std::unique_ptr<Context>>;
        all.push_back(std::make_unique<Context>(device, false));
        bring_to_life(e, *all.back());
        *handle = all.back()->handle();
    }
    return make_current(*handle, Put::kOnTop);
}

}  // namespace

Context::Context(int device_ordinal, bool is_primary)
    : device(device_ordinal), primary(is_primary) {}

CUresult current_context(Context*& context, Lost lost) {
    context = current.top();
    if (context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    if (!context->alive) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return lost == Lost::kAllowed ? CUDA_SUCCESS : context->lost.load(std::memory_order_relaxed);
}

void lose(Context& context, CUresult result, const Text& why) {
    CUresult well = CUDA_SUCCESS;
    if (context.lost.compare_exchange_strong(well, result, std::memory_order_relaxed)) {
        say("the context of device {} is lost (error {}): {}", context.device,
            static_cast<int>(result), std::string_view(why));
    }
}

void finish_all_work(Context& context) {
    for (const auto& stream : streams_of(context)) {
        stream->finish();
    }
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice device) {
    SYMM_EMU_ENTER(cuDevicePrimaryCtxRetain);
    if (handle == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    Context& context = *e.devices[device].primary;
    bring_to_life(e, context);
    ++context.retained;
    *handle = context.handle();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    SYMM_EMU_ENTER(cuDevicePrimaryCtxRelease);
    if (!is_device(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    Emulator& e = emulator();
    Context& context = *e.devices[device].primary;
    {
        const WriteLock lock(e.mutex);
        if (context.retained == 0) {
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        if (--context.retained > 0) {
            return CUDA_SUCCESS;
        }
    }
    end_life(context);
    return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 13000
CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams* /*parameters*/, unsigned int flags,
                     CUdevice device) {
    SYMM_EMU_ENTER(cuCtxCreate);
    return create(context, flags, device);
}
#else
CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
    SYMM_EMU_ENTER(cuCtxCreate);
    return create(context, flags, device);
}
#endif

CUresult cuCtxDestroy(CUcontext handle) {
    SYMM_EMU_ENTER(cuCtxDestroy);
    Emulator& e = emulator();
    Context* context = nullptr;
    {
        const ReadLock lock(e.mutex);
        context = find_context(e, handle);
    }
    if (context == nullptr || context->primary) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    end_life(*context);
    if (current.top() == context) {
        --current.depth;
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle) {
    SYMM_EMU_ENTER(cuCtxSetCurrent);
    if (handle != nullptr) {
        return make_current(handle, Put::kInsteadOfTop);
    }
    current.depth -= current.depth > 0 ? 1 : 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* handle) {
    SYMM_EMU_ENTER(cuCtxGetCurrent);
    if (handle == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *handle = current.depth > 0 ? current.top()->handle() : nullptr;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext handle) {
    SYMM_EMU_ENTER(cuCtxPushCurrent);
    return make_current(handle, Put::kOnTop);
}

CUresult cuCtxPopCurrent(CUcontext* handle) {
    SYMM_EMU_ENTER(cuCtxPopCurrent);
    if (current.depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (handle != nullptr) {
        *handle = current.top()->handle();
    }
    --current.depth;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
    SYMM_EMU_ENTER(cuCtxGetDevice);
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context, Lost::kAllowed));
    if (device == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
    SYMM_EMU_ENTER(cuCtxSynchronize);
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context, Lost::kAllowed));
    finish_all_work(*context);  // a lost kernel's other threads may still be running
    return context->lost.load(std::memory_order_relaxed);
}

}  // namespace symm::emu
