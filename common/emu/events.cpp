#include "common/emu/events.hpp"

#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/graphs.hpp"
#include "common/emu/streams.hpp"

namespace symm::emu {
namespace {

// The latest record. Answers CUDA_ERROR_CAPTURED_EVENT where that is part of a graph, which has no
// time.
CUresult latest_moment(CUevent handle, std::shared_ptr<Event>& event,
                       std::shared_ptr<Moment>& moment) {
    event = find_event(handle);
    if (event == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const std::lock_guard lock(event->mutex);
    if (event->capture != nullptr) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    moment = event->latest;
    return CUDA_SUCCESS;
}

}  // namespace

void Moment::arrive() {
    const std::lock_guard lock(mutex_);
    when_ = std::chrono::steady_clock::now();
    has_come_ = true;
    came_.notify_all();
}

void Moment::wait() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return has_come_; });
}

bool Moment::has_come() const {
    const std::lock_guard lock(mutex_);
    return has_come_;
}

std::shared_ptr<Event> find_event(CUevent handle) {
    Emulator& e = emulator();
    const ReadLock lock(e.mutex);
    const auto found = e.events.find(handle);
    return found != e.events.end() ? found->second : nullptr;
}

CUresult cuEventCreate(CUevent* handle, unsigned int flags) {
    SYMM_EMU_ENTER(cuEventCreate);
    Context* context = nullptr;
    SYMM_EMU_TRY(current_context(context));
    constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (handle == nullptr || (flags & ~kKnown) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    *handle = e.new_handle_as<CUevent>();
    e.events[*handle] = std::make_shared<Event>(*context, flags);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent handle) {
    SYMM_EMU_ENTER(cuEventDestroy);
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    return e.events.erase(handle) > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
    SYMM_EMU_ENTER(cuEventRecord);
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(stream_handle, stream));
    const std::shared_ptr<Event> event = find_event(handle);
    if (event == nullptr || &event->context != &stream->context()) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult result = CUDA_SUCCESS;
    if (capture_record(*stream, *event, result)) {
        return result;
    }
    auto moment = std::make_shared<Moment>();
    Operation operation;
    operation.context = &stream->context();
    operation.run = [moment] { moment->arrive(); };
    operation.even_if_lost = true;
    if (result = stream->push(std::move(operation)); result == CUDA_SUCCESS) {
        const std::lock_guard lock(event->mutex);
        event->latest = std::move(moment);
        event->capture.reset();
    }
    return result;
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned int flags) {
    SYMM_EMU_ENTER(cuStreamWaitEvent);
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(stream_handle, stream));
    if ((flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::shared_ptr<Event> event = find_event(handle);
    if (event == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult result = CUDA_SUCCESS;
    if (capture_wait(stream, stream_handle, *event, result)) {
        return result;
    }
    std::shared_ptr<Moment> moment;
    {
        const std::lock_guard lock(event->mutex);
        moment = event->latest;
    }
    if (moment == nullptr) {
        return CUDA_SUCCESS;  // never recorded: nothing to wait for
    }
    Operation operation;
    operation.context = &stream->context();
    operation.run = [moment] { moment->wait(); };
    operation.even_if_lost = true;
    return stream->push(std::move(operation));
}

CUresult cuEventSynchronize(CUevent handle) {
    SYMM_EMU_ENTER(cuEventSynchronize);
    std::shared_ptr<Event> event;
    std::shared_ptr<Moment> moment;
    SYMM_EMU_TRY(latest_moment(handle, event, moment));
    if (moment != nullptr) {
        moment->wait();
    }
    return event->context.lost.load(std::memory_order_relaxed);
}

CUresult cuEventQuery(CUevent handle) {
    SYMM_EMU_ENTER(cuEventQuery);
    std::shared_ptr<Event> event;
    std::shared_ptr<Moment> moment;
    SYMM_EMU_TRY(latest_moment(handle, event, moment));
    if (moment != nullptr && !moment->has_come()) {
        return CUDA_ERROR_NOT_READY;
    }
    return event->context.lost.load(std::memory_order_relaxed);
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    SYMM_EMU_ENTER(cuEventElapsedTime);
    if (milliseconds == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::shared_ptr<Event> events[2];
    std::shared_ptr<Moment> moments[2];
    const CUevent handles[2] = {start, end};
    for (int i = 0; i < 2; ++i) {
        SYMM_EMU_TRY(latest_moment(handles[i], events[i], moments[i]));
        if (moments[i] == nullptr || (events[i]->flags & CU_EVENT_DISABLE_TIMING) != 0) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
    }
    if (!moments[0]->has_come() || !moments[1]->has_come()) {
        return CUDA_ERROR_NOT_READY;
    }
    const std::chrono::duration<float, std::milli> time = moments[1]->when() - moments[0]->when();
    *milliseconds = time.count();
    return CUDA_SUCCESS;
}

}  // namespace symm::emu
