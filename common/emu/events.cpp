#include "common/emu/events.hpp"

#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/graphs.hpp"
#include "common/emu/streams.hpp"

namespace symm::emu {
namespace {

// The latest record. Returns CUDA_ERROR_CAPTURED_EVENT if the event was recorded in a stream
// that was capturing: such a record only orders the nodes of the graph, so no stream ever reaches
// it.
CUresult latest_moment(CUevent handle, std::shared_ptr<Event>& event, Moment& moment) {
    event = find_in(emulator().events, handle);
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
    const std::shared_ptr<Event> event = find_in(emulator().events, handle);
    if (event == nullptr || &event->context != &stream->context()) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (const auto answer = capture_record(*stream, *event)) {
        return *answer;
    }
    const auto moment = std::make_shared<std::promise<std::chrono::steady_clock::time_point>>();
    const auto arrive = [moment] { moment->set_value(std::chrono::steady_clock::now()); };
    SYMM_EMU_TRY(stream->push({&stream->context(), arrive, true}));
    const std::lock_guard lock(event->mutex);
    event->latest = moment->get_future();
    event->capture.reset();
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned int flags) {
    SYMM_EMU_ENTER(cuStreamWaitEvent);
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(stream_handle, stream));
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::shared_ptr<Event> event = find_in(emulator().events, handle);
    if (event == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (const auto answer = capture_wait(*stream, stream_handle, *event)) {
        return *answer;
    }
    Moment moment;
    {
        const std::lock_guard lock(event->mutex);
        moment = event->latest;
    }
    if (!moment.valid()) {
        return CUDA_SUCCESS;  // never recorded: nothing to wait for
    }
    return stream->push({&stream->context(), [moment] { moment.wait(); }, true});
}

CUresult cuEventSynchronize(CUevent handle) {
    SYMM_EMU_ENTER(cuEventSynchronize);
    std::shared_ptr<Event> event;
    Moment moment;
    SYMM_EMU_TRY(latest_moment(handle, event, moment));
    if (moment.valid()) {
        moment.wait();
    }
    return event->context.state();
}

CUresult cuEventQuery(CUevent handle) {
    SYMM_EMU_ENTER(cuEventQuery);
    SYMM_EMU_TRY(refuse_unsafe_call());
    std::shared_ptr<Event> event;
    Moment moment;
    SYMM_EMU_TRY(latest_moment(handle, event, moment));
    if (moment.valid() && !has_come(moment)) {
        return CUDA_ERROR_NOT_READY;
    }
    return event->context.state();
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    SYMM_EMU_ENTER(cuEventElapsedTime);
    if (milliseconds == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::shared_ptr<Event> events[2];
    Moment moments[2];
    const CUevent handles[2] = {start, end};
    for (int i = 0; i < 2; ++i) {
        SYMM_EMU_TRY(latest_moment(handles[i], events[i], moments[i]));
        if (!moments[i].valid() || (events[i]->flags & CU_EVENT_DISABLE_TIMING) != 0) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
    }
    if (!has_come(moments[0]) || !has_come(moments[1])) {
        return CUDA_ERROR_NOT_READY;
    }
    const std::chrono::duration<float, std::milli> time = moments[1].get() - moments[0].get();
    *milliseconds = time.count();
    return CUDA_SUCCESS;
}

}  // namespace symm::emu
