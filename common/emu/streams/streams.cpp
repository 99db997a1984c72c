#include "common/emu/streams/streams.hpp"

#include <system_error>
#include <thread>

#include "common/emu/emulator.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/streams/graphs.hpp"

namespace symm::emu {

void InOrder::finish() {
    if (last_ != nullptr) {
        last_->finish();
        last_.reset();
    }
}

void InOrder::perform(const Operation& operation) {
    if (!operation.is_dependent) {
        finish();
    } else if (last_ != nullptr) {
        last_->wait_until_triggered();
    }
    Context& context = *operation.context;
    if (operation.in_lost_context == Lost::kRefused && context.state() != CUDA_SUCCESS) {
        return;
    }
    try {
        if (operation.start) {
            auto started = operation.start(last_.get());
            finish();
            last_ = std::move(started);
        } else {
            operation.run();
        }
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

void Stream::push(Operation operation) {
    const std::lock_guard lock(mutex_);
    if (!has_thread_) {
        try {
            std::thread(work, shared_from_this()).detach();
        } catch (const std::system_error& error) {
            refuse(shortage("a stream's thread", error.code().value()));
        }
        has_thread_ = true;
    }
    queue_.push_back(std::move(operation));
    ++pushed_;
    changed_.notify_all();
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
    InOrder in_order;
    std::uint64_t begun = 0;
    std::unique_lock lock(stream.mutex_);
    while (true) {
        stream.changed_.wait(lock, [&] { return !stream.queue_.empty() || stream.closed_; });
        if (stream.queue_.empty()) {
            return;
        }
        {
            const Operation operation = std::move(stream.queue_.front());
            stream.queue_.pop_front();
            ++begun;
            const bool overlaps = !stream.queue_.empty() && stream.queue_.front().is_dependent;
            lock.unlock();
            in_order.perform(operation);
            if (!overlaps) {
                in_order.finish();
            }
        }  // the operation is destroyed before it counts as done
        lock.lock();
        stream.done_ = begun - (in_order.is_unfinished() ? 1 : 0);
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

std::shared_ptr<Stream> find_stream(CUstream handle, Lost lost) {
    Context& context = current_context(lost);
    if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        const Reading e;
        refuse_if(context.default_stream == nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
        return handle == CU_STREAM_PER_THREAD ? stream_of_thread(context) : context.default_stream;
    }
    auto stream = find_in(emulator().streams, handle);
    if (lost == Lost::kRefused) {
        stream->context().check_state();
    }
    return stream;
}

void cuStreamCreate(CUstream* handle, unsigned int flags) {
    Context& context = current_context();
    refuse_if(handle == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0);
    if (flags != CU_STREAM_NON_BLOCKING) {
        say("cuStreamCreate: emulated streams must be CU_STREAM_NON_BLOCKING");
        refuse(CUDA_ERROR_NOT_SUPPORTED);
    }
    auto stream = new_stream(context);
    const Changing e;
    *handle = e->keep(e->streams, std::move(stream));
}

void cuStreamDestroy(CUstream handle) {
    const auto stream = find_in(emulator().streams, handle);
    erase_from(emulator().streams, handle);
    abandon_capture(*stream);
    stream->close();
}

void cuStreamSynchronize(CUstream handle) {
    // A call that is set to fail waits first: after a real failure, no queued work runs either.
    const CUresult planned = answer([] { enter(index_of_function("cuStreamSynchronize")); });
    const CUresult result = answer([&] {
        const auto stream = find_stream(handle, Lost::kAllowed);
        refuse_while_capturing(*stream);
        refuse_unsafe_call();
        stream->finish();
        stream->context().check_state();
    });
    refuse_if(planned != CUDA_SUCCESS, planned);
    refuse_if(result != CUDA_SUCCESS, result);
}

void cuStreamQuery(CUstream handle) {
    const auto stream = find_stream(handle);
    refuse_while_capturing(*stream);
    refuse_if(!stream->is_idle(), CUDA_ERROR_NOT_READY);
    stream->context().check_state();
}

}  // namespace symm::emu
