#include "common/emu/contexts.hpp"

#include <deque>
#include <mutex>
#include <vector>

#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/events.hpp"
#include "common/emu/log.hpp"
#include "common/emu/streams.hpp"

namespace symm::emu {
namespace {

// The calling thread's stack of contexts. It has no destructor: owners with static storage call the
// driver after the main thread's thread_local objects are destroyed.
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
    if (!e.contexts.insert(&context).second) {
        return;  // a primary context, retained again before its release was done
    }
    context.default_stream = new_stream(context);
    context.lost = CUDA_SUCCESS;
}

// Waits for all queued work, then destroys the context and everything created in it.
void end_life(Context& context) {
    finish_all_work(context);
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    if (context.retained > 0 || e.contexts.erase(&context) == 0) {
        return;  // another thread retained it again, or destroyed it
    }
    context.default_stream->close();
    context.default_stream.reset();
    for (const auto& [thread, stream] : context.thread_streams) {
        stream->close();
    }
    context.thread_streams.clear();
    std::erase_if(e.streams, [&](const auto& entry) {
        const bool mine = &entry.second->context() == &context;
        if (mine) {
            entry.second->close();
        }
        return mine;
    });
    std::erase_if(e.events, [&](const auto& entry) { return &entry.second->context == &context; });
    for (auto one = e.plain.begin(); one != e.plain.end();) {
        const auto& [pointer, memory] = *one++;
        if (memory.context == &context) {
            drop_plain(e, pointer);
        }
    }
}

// Puts the context on top of the stack, or replaces what is on top.
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

}  // namespace

CUresult current_context(Context*& context, Lost lost) {
    context = current.top();
    if (context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    if (!e.contexts.contains(context)) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return lost == Lost::kAllowed ? CUDA_SUCCESS : context->state();
}

void lose(Context& context, CUresult result, const Text& why) {
    // Reported first: a thread that sees the lost context may end the process.
    static std::mutex losing;
    const std::lock_guard lock(losing);
    if (context.lost.load(std::memory_order_relaxed) == CUDA_SUCCESS) {
        say("the context of device {} is lost (error {}): {}", context.device,
            static_cast<int>(result), std::string_view(why));
        context.lost.store(result, std::memory_order_relaxed);
    }
}

void finish_all_work(Context& context) {
    std::vector<std::shared_ptr<Stream>> streams;
    {
        const std::lock_guard lock(context.streams_mutex);
        for (const auto& one : context.streams) {
            if (auto stream = one.lock()) {
                streams.push_back(std::move(stream));
            }
        }
    }
    for (const auto& stream : streams) {
        stream->finish();
    }
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice device) {
    SYMM_EMU_ENTER(cuDevicePrimaryCtxRetain);
    SYMM_EMU_TRY(check_arguments(handle, device));
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
CUresult cuCtxCreate(CUcontext* handle, CUctxCreateParams* /*parameters*/, unsigned int flags,
                     CUdevice device)
#else
CUresult cuCtxCreate(CUcontext* handle, unsigned int flags, CUdevice device)
#endif
{
    SYMM_EMU_ENTER(cuCtxCreate);
    if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    SYMM_EMU_TRY(check_arguments(handle, device));
    {
        Emulator& e = emulator();
        const WriteLock lock(e.mutex);
        static std::deque<Context>& all = *new std::deque<Context>;
        Context& context = all.emplace_back(device);
        bring_to_life(e, context);
        *handle = context.handle();
    }
    return make_current(*handle, Put::kOnTop);
}

CUresult cuCtxDestroy(CUcontext handle) {
    SYMM_EMU_ENTER(cuCtxDestroy);
    Emulator& e = emulator();
    Context* context = nullptr;
    {
        const ReadLock lock(e.mutex);
        context = find_context(e, handle);
    }
    if (context == nullptr || context == e.devices[context->device].primary.get()) {
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
    finish_all_work(*context);  // other threads of a failed kernel may still run
    return context->state();
}

}  // namespace symm::emu
