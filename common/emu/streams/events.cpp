#include "common/emu/streams/events.hpp"

#include "common/emu/emulator.hpp"
#include "common/emu/streams/graphs.hpp"
#include "common/emu/streams/streams.hpp"

namespace symm::emu {
namespace {

// The latest record. Refuses with CUDA_ERROR_CAPTURED_EVENT if the event was recorded in a stream
// that was capturing: such a record only orders the nodes of the graph, so no stream ever reaches
// it.
Moment latest_moment(Event& event) {
    const std::lock_guard lock(event.mutex);
    refuse_if(event.capture != nullptr, CUDA_ERROR_CAPTURED_EVENT);
    return event.latest;
}

}  // namespace

void cuEventCreate(CUevent* handle, unsigned int flags) {
    Context& context = current_context();
    constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    refuse_if(handle == nullptr || (flags & ~kKnown) != 0);
    const Changing e;
    *handle = e->keep(e->events, std::make_shared<Event>(context, flags));
}

void cuEventDestroy(CUevent handle) {
    erase_from(emulator().events, handle);
}

void cuEventRecord(CUevent handle, CUstream stream_handle) {
    const auto stream = find_stream(stream_handle);
    const auto event = find_in(emulator().events, handle);
    refuse_if(&event->context != &stream->context(), CUDA_ERROR_INVALID_HANDLE);
    if (capture_record(*stream, *event)) {
        return;
    }
    const auto moment = std::make_shared<std::promise<std::chrono::steady_clock::time_point>>();
    const auto arrive = [moment] { moment->set_value(std::chrono::steady_clock::now()); };
    stream->push({&stream->context(), arrive, Lost::kAllowed});
    const std::lock_guard lock(event->mutex);
    event->latest = moment->get_future();
    event->capture.reset();
}

void cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned int flags) {
    const auto stream = find_stream(stream_handle);
    refuse_if(flags != 0);
    const auto event = find_in(emulator().events, handle);
    if (capture_wait(*stream, stream_handle, *event)) {
        return;
    }
    const Moment moment = latest_moment(*event);
    if (moment.valid()) {  // else never recorded: nothing to wait for
        stream->push({&stream->context(), [moment] { moment.wait(); }, Lost::kAllowed});
    }
}

void cuEventSynchronize(CUevent handle) {
    const auto event = find_in(emulator().events, handle);
    const Moment moment = latest_moment(*event);
    if (moment.valid()) {
        moment.wait();
    }
    event->context.check_state();
}

void cuEventQuery(CUevent handle) {
    refuse_unsafe_call();
    const auto event = find_in(emulator().events, handle);
    const Moment moment = latest_moment(*event);
    refuse_if(moment.valid() && !has_come(moment), CUDA_ERROR_NOT_READY);
    event->context.check_state();
}

void cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    refuse_if(milliseconds == nullptr);
    const auto timed = [](CUevent handle) {
        const auto event = find_in(emulator().events, handle);
        Moment moment = latest_moment(*event);
        refuse_if(!moment.valid() || (event->flags & CU_EVENT_DISABLE_TIMING) != 0,
                  CUDA_ERROR_INVALID_HANDLE);
        return moment;
    };
    const Moment from = timed(start), to = timed(end);
    refuse_if(!has_come(from) || !has_come(to), CUDA_ERROR_NOT_READY);
    const std::chrono::duration<float, std::milli> time = to.get() - from.get();
    *milliseconds = time.count();
}

}  // namespace symm::emu
