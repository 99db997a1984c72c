#include "common/emu/streams.hpp"

#include <cerrno>
#include <new>
#include <system_error>
#include <thread>

#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/graphs.hpp"
#include "common/emu/shortage.hpp"

namespace symm::emu {
namespace {

CUresult synchronize(CUstream handle) {
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(handle, stream, Lost::kAllowed));
    SYMM_EMU_TRY(refuse_while_capturing(*stream));
    SYMM_EMU_TRY(refuse_unsafe_call());
    stream->finish();
    return stream->context().state();
}

}  // namespace

void perform(const Operation& operation) {
    Context& context = *operation.context;
    if (!operation.even_if_lost && context.state() != CUDA_SUCCESS) {
        return;
    }
    try {
        operation.run();
    } catch (const std::bad_alloc&) {
        lose(context, shortage("the work of a stream", ENOMEM), Text("its work ran out of memory"));
    }
}

std::shared_ptr<Stream> new_stream(Context& context) {
    auto stream = std::make_shared<Stream>(context);
    const std::lock_guard lock(context.streams_mutex);
    std::erase_if(context.streams, [](const auto& one) { return one.expired(); });
    context.streams.push_back(stream);
    return stream;
}

CUresult Stream::push(Operation operation) {
    const std::lock_guard lock(mutex_);
    if (!has_thread_) {
        try {
            std::thread(work, shared_from_this()).detach();
        } catch (const std::system_error& error) {
            return shortage("a stream's thread", error.code().value());
        }
        has_thread_ = true;
    }
    queue_.push_back(std::move(operation));
    ++pushed_;
    changed_.notify_all();
    return CUDA_SUCCESS;
}

void Stream::finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, until = pushed_] { return done_ >= until; });
}

bool Stream::is_idle() const {
    const std::lock_guard lock(mutex_);
    return done_ == pushed_;
}

void Stream::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
}

void Stream::work(std::shared_ptr<Stream> self) {
    Stream& stream = *self;
    std::unique_lock lock(stream.mutex_);
    while (true) {
        stream.changed_.wait(lock, [&] { return !stream.queue_.empty() || stream.closed_; });
        if (stream.queue_.empty()) {
            return;
        }
        {
            const Operation operation = std::move(stream.queue_.front());
            stream.queue_.pop_front();
            lock.unlock();
            perform(operation);
        }  // the operation is destroyed before it counts as done
        lock.lock();
        ++stream.done_;
        stream.changed_.notify_all();
    }
}

namespace {

// Made at the thread's first use of the handle.
std::shared_ptr<Stream> stream_of_thread(Context& context) {
    std::unique_lock lock(context.streams_mutex);
    auto& stream = context.thread_streams[std::this_thread::get_id()];
    if (stream == nullptr) {
        stream = std::make_shared<Stream>(context);
        context.streams.push_back(stream);
    }
    return stream;
}

}  // namespace

CUresult find_stream(CUstream handle, std::shared_ptr<Stream>& stream, Lost lost) {
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context, lost));
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        stream = context->default_stream;
        if (stream != nullptr && handle == CU_STREAM_PER_THREAD) {
            stream = stream_of_thread(*context);
        }
        return stream != nullptr ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    const auto found = e.streams.find(handle);
    if (found == e.streams.end()) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    stream = found->second;
    return lost == Lost::kAllowed ? CUDA_SUCCESS : stream->context().state();
}

CUresult cuStreamCreate(CUstream* handle, unsigned int flags) {
    SYMM_EMU_ENTER(cuStreamCreate);
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context));
    if (handle == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (flags != CU_STREAM_NON_BLOCKING) {
        say("cuStreamCreate: emulated streams must be CU_STREAM_NON_BLOCKING");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    Emulator& e = emulator();
    auto stream = new_stream(*context);
    const WriteLock lock(e.mutex);
    *handle = e.new_handle_as<CUstream>();
    e.streams[*handle] = std::move(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream handle) {
    SYMM_EMU_ENTER(cuStreamDestroy);
    Emulator& e = emulator();
    WriteLock lock(e.mutex);
    const auto node = e.streams.extract(handle);
    lock.unlock();
    if (node.empty()) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    abandon_capture(*node.mapped());
    node.mapped()->close();
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
    // A call that is set to fail waits first: after a real failure, no queued work runs either.
    const CUresult told = enter(index_of_function("cuStreamSynchronize"));
    const CUresult result = synchronize(handle);
    return told != CUDA_SUCCESS ? told : result;
}

CUresult cuStreamQuery(CUstream handle) {
    SYMM_EMU_ENTER(cuStreamQuery);
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(handle, stream));
    SYMM_EMU_TRY(refuse_while_capturing(*stream));
    if (!stream->is_idle()) {
        return CUDA_ERROR_NOT_READY;
    }
    return stream->context().state();
}

}  // namespace symm::emu
