#include "labs/04_shm_transport/proxy/proxy.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/graph.hpp"
#include "common/simt/atomic.hpp"
#include "common/simt/back_off.hpp"

namespace symm {

bool ProxyChannel::progress(CUstream stream) {
    bool any = false;
    while (start_copy(stream)) {
        any = true;
    }
    while (end_copy()) {
        any = true;
    }
    return any;
}

bool ProxyChannel::start_copy(CUstream stream) {
    const auto& [from, to, peer] = route_;
    const std::uint64_t step = started_;
    if (step - ended_ == kSteps || simt::load(&from.receive->tail, simt::Order::kAcquire) == step ||
        step - simt::load(&to.send->head, simt::Order::kAcquire) >= kSteps) {
        return false;
    }
    FifoEntry& entry = entries_[step % kSteps];
    entry = FifoEntry::read(from.receive->fifo[step % kSteps]);
    const std::byte* source = from.data(step, entry);
    if (source == nullptr || entry.size > to.slot_bytes) {
        throw std::runtime_error(
            fmt::format("a step of {} bytes at offset {}, between this rank and rank {}, does not "
                        "lie in the connection's buffer of {} bytes",
                        entry.size, entry.offset, peer, from.buffer_bytes));
    }
    cu_check(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to.slot(step)),
                           reinterpret_cast<CUdeviceptr>(source), entry.size, stream),
             "cuMemcpyAsync(size={})", entry.size);
    copied_[step % kSteps].record(stream);
    ++started_;
    return true;
}

bool ProxyChannel::end_copy() {
    const auto& [from, to, peer] = route_;
    const std::uint64_t step = ended_;
    if (step == started_) {
        return false;
    }
    const CUresult result = cuEventQuery(copied_[step % kSteps].get());
    if (result == CUDA_ERROR_NOT_READY) {
        return false;
    }
    cu_check(result, "cuEventQuery()");
    const FifoEntry& entry = entries_[step % kSteps];
    to.receive->fifo[step % kSteps] = {StepMode::kNormal, 0, entry.size, entry.left};
    simt::store(&to.receive->tail, step + 1, simt::Order::kRelease);
    simt::store(&from.send->head, step + 1, simt::Order::kRelease);
    ++ended_;
    return true;
}

Proxy::Proxy(int device, const std::vector<ProxyRoute>& routes, std::function<void()> on_failure)
    : device_(device),
      channels_(routes.begin(), routes.end()),
      thread_(
          [this](const std::stop_token& stop) {
              try {
                  run(stop);
              } catch (const std::exception& error) {
                  cuStreamSynchronize(stream_.get());  // copies use slots; its result is ignored
                  throw std::runtime_error(
                      fmt::format("the proxy of the transport failed: {}", error.what()));
              }
          },
          std::move(on_failure)) {}

void Proxy::run(const std::stop_token& stop) {
    device_.make_current();
    const RelaxedCapture relaxed;  // a user may be capturing in mode GLOBAL
    for (int idle = 0; !stop.stop_requested();) {
        bool any = false;
        for (ProxyChannel& channel : channels_) {
            any |= channel.progress(stream_.get());
        }
        idle = any ? 0 : std::min(idle + 1, 2 * kPollsBeforeSleep);
        if (idle > kPollsBeforeSleep) {
            simt::back_off(idle - kPollsBeforeSleep);
        }
    }
    stream_.synchronize("the proxy's last copies");  // they use slots that are freed next
}

}  // namespace symm
