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

void perform(const Operation& operation) {
    Context& context = *operation.context;
    if (!operation.even_if_lost && context.lost.load(std::memory_order_relaxed) != CUDA_SUCCESS) {
        return;
    }
    try {
        operation.run();
    } catch (const std::bad_alloc&) {
        lose(context, shortage("the work of a stream", ENOMEM), Text("its work ran out of memory"));
    }
}

std::shared_ptr<Stream> new_stream(Context& context, Stream::Kind kind) {
    auto stream = std::make_shared<Stream>(context, kind);
    const std::lock_guard lock(context.streams_mutex);
    std::erase_if(context.streams, [](const auto& one) { return one.expired(); });
    context.streams.push_back(stream);
    return stream;
}

std::vector<std::shared_ptr<Stream>> streams_of(Context& context) {
    std::vector<std::shared_ptr<Stream>> streams;
    const std::lock_guard lock(context.streams_mutex);
    for (const auto& one : context.streams) {
        if (auto stream = one.lock()) {
            streams.push_back(std::move(stream));
        }
    }
    return streams;
}

// What has to be waited for by the rule of the legacy default stream.
std::vector<Operation> Stream::legacy_waits() {
    std::vector<Operation> waits;
    if (kind_ == Kind::kNonBlocking) {
        return waits;
    }
    const Kind others = kind_ == Kind::kDefault ? Kind::kBlocking : Kind::kDefault;
    for (const auto& other : streams_of(context_)) {
        if (other->kind_ != others) {
            continue;
        }
        const std::lock_guard lock(other->mutex_);
        if (other->done_ < other->pushed_) {
            waits.push_back(
                {&context_, [other, until = other->pushed_] { other->finish(until); }, true});
        }
    }
    return waits;
}

void Stream::queue(Operation operation) {
    queue_.push_back(std::move(operation));
    ++pushed_;
}

CUresult Stream::push(Operation operation) {
    std::vector<Operation> waits = legacy_waits();
    const std::lock_guard lock(mutex_);
    if (!has_thread_) {
        try {
            std::thread(work, shared_from_this()).detach();
        } catch (const std::system_error& error) {
            return shortage("a stream's thread", error.code().value());
        }
        has_thread_ = true;
    }
    for (Operation& wait : waits) {
        queue(std::move(wait));
    }
    queue(std::move(operation));
    changed_.notify_all();
    return CUDA_SUCCESS;
}

void Stream::finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, until = pushed_] { return done_ >= until; });
}

void Stream::finish(std::uint64_t until) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= until; });
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
        }  // what the operation held is gone before it counts as done
        lock.lock();
        ++stream.done_;
        stream.changed_.notify_all();
    }
}

CUresult find_stream(CUstream handle, std::shared_ptr<Stream>& stream, Lost lost) {
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context, lost));
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    if (is_default_stream(handle)) {
        stream = context->default_stream;
        return stream != nullptr ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    const auto found = e.streams.find(handle);
    if (found == e.streams.end()) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    stream = found->second;
    return lost == Lost::kAllowed ? CUDA_SUCCESS
                                  : stream->context().lost.load(std::memory_order_relaxed);
}

CUresult cuStreamCreate(CUstream* handle, unsigned int flags) {
    SYMM_EMU_ENTER(cuStreamCreate);
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context));
    if (handle == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    auto stream = new_stream(*context, flags == CU_STREAM_NON_BLOCKING ? Stream::Kind::kNonBlocking
                                                                       : Stream::Kind::kBlocking);
    const WriteLock lock(e.mutex);
    *handle = e.new_handle_as<CUstream>();
    e.streams[*handle] = std::move(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream handle) {
    SYMM_EMU_ENTER(cuStreamDestroy);
    Emulator& e = emulator();
    std::shared_ptr<Stream> stream;
    {
        const WriteLock lock(e.mutex);
        const auto found = e.streams.find(handle);
        if (found == e.streams.end()) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        stream = std::move(found->second);
        e.streams.erase(found);
    }
    abandon_capture(*stream);
    stream->close();
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
    // One that is told to fail has waited all the same: what was queued is over, as after a real failure.
    const CUresult told = enter(index_of_function("cuStreamSynchronize"));
    const auto answer = [told](CUresult result) { return told != CUDA_SUCCESS ? told : result; };
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream, Lost::kAllowed);
        result != CUDA_SUCCESS) {
        return answer(result);
    }
    if (const CUresult result = refuse_while_capturing(*stream); result != CUDA_SUCCESS) {
        return answer(result);
    }
    if (const CUresult result = refuse_in_capturing_thread(); result != CUDA_SUCCESS) {
        return answer(result);
    }
    stream->finish();
    return answer(stream->context().lost.load(std::memory_order_relaxed));
}

CUresult cuStreamQuery(CUstream handle) {
    SYMM_EMU_ENTER(cuStreamQuery);
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(handle, stream));
    SYMM_EMU_TRY(refuse_while_capturing(*stream));
    if (!stream->is_idle()) {
        return CUDA_ERROR_NOT_READY;
    }
    return stream->context().lost.load(std::memory_order_relaxed);
}

}  // namespace symm::emu
