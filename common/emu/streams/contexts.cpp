#include "common/emu/streams/contexts.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

#include "common/emu/emulator.hpp"
#include "common/emu/streams/events.hpp"
#include "common/emu/streams/graphs.hpp"
#include "common/emu/streams/streams.hpp"

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
Context& find_context(const Emulator& e, CUcontext handle) {
    auto* context = reinterpret_cast<Context*>(handle);
    refuse_if(!e.contexts.contains(context), CUDA_ERROR_INVALID_CONTEXT);
    return *context;
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
    const Changing e;
    if (context.retained > 0 || e->contexts.erase(&context) == 0) {
        return;  // another thread retained it again, or destroyed it
    }
    context.default_stream->close();
    context.default_stream.reset();
    for (const auto& [thread, stream] : context.thread_streams) {
        stream->close();
    }
    context.thread_streams.clear();
    std::erase_if(e->streams, [&](const auto& entry) {
        const bool mine = &entry.second->context() == &context;
        if (mine) {
            entry.second->close();
        }
        return mine;
    });
    std::erase_if(e->events, [&](const auto& entry) { return &entry.second->context == &context; });
    std::erase_if(e->plain, [&](const auto& entry) { return entry.second.context == &context; });
}

// Puts the context on top of the stack, which then has that depth.
void make_current(CUcontext handle, int depth) {
    const Reading e;
    Context& context = find_context(*e, handle);
    refuse_if(depth > CurrentStack::kDeepest, CUDA_ERROR_OUT_OF_MEMORY);
    current.depth = depth;
    current.contexts[depth - 1] = &context;
}

}  // namespace

Context& current_context(Lost lost) {
    Context* const context = current.top();
    refuse_if(context == nullptr, CUDA_ERROR_INVALID_CONTEXT);
    const Reading e;
    refuse_if(!e->contexts.contains(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    if (lost == Lost::kRefused) {
        context->check_state();
    }
    return *context;
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

void cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice device) {
    refuse_if(handle == nullptr);
    check_device(device);
    const Changing e;
    Context& context = *e->devices[device].primary;
    bring_to_life(*e, context);
    ++context.retained;
    *handle = context.handle();
}

void cuDevicePrimaryCtxRelease(CUdevice device) {
    check_device(device);
    Context& context = *emulator().devices[device].primary;
    {
        const Changing e;
        refuse_if(context.retained == 0, CUDA_ERROR_INVALID_CONTEXT);
        if (--context.retained > 0) {
            return;
        }
    }
    end_life(context);
}

#if CUDA_VERSION >= 13000
void cuCtxCreate(CUcontext* handle, CUctxCreateParams* /*parameters*/, unsigned int flags,
                 CUdevice device)
#else
void cuCtxCreate(CUcontext* handle, unsigned int flags, CUdevice device)
#endif
{
    refuse_if(handle == nullptr || (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0);
    check_device(device);
    {
        const Changing e;
        static std::deque<Context>& all = *new std::deque<Context>;
        Context& context = all.emplace_back(device);
        bring_to_life(*e, context);
        *handle = context.handle();
    }
    make_current(*handle, current.depth + 1);
}

void cuCtxDestroy(CUcontext handle) {
    Context* context = nullptr;
    {
        const Reading e;
        context = &find_context(*e, handle);
        refuse_if(context == e->devices[context->device].primary.get(), CUDA_ERROR_INVALID_CONTEXT);
    }
    end_life(*context);
    if (current.top() == context) {
        --current.depth;
    }
}

void cuCtxSetCurrent(CUcontext handle) {
    if (handle != nullptr) {
        make_current(handle, std::max(current.depth, 1));
    } else if (current.depth > 0) {
        --current.depth;
    }
}

void cuCtxGetCurrent(CUcontext* handle) {
    refuse_if(handle == nullptr);
    *handle = current.depth > 0 ? current.top()->handle() : nullptr;
}

void cuCtxPushCurrent(CUcontext handle) {
    make_current(handle, current.depth + 1);
}

void cuCtxPopCurrent(CUcontext* handle) {
    refuse_if(current.depth == 0, CUDA_ERROR_INVALID_CONTEXT);
    if (handle != nullptr) {
        *handle = current.top()->handle();
    }
    --current.depth;
}

void cuCtxGetDevice(CUdevice* device) {
    const Context& context = current_context(Lost::kAllowed);
    refuse_if(device == nullptr);
    *device = context.device;
}

void cuCtxSynchronize() {
    Context& context = current_context(Lost::kAllowed);
    refuse_while_capturing(context);
    finish_all_work(context);  // other threads of a failed kernel may still run
    context.check_state();
}

}  // namespace symm::emu
