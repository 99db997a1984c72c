#include "common/cuda/check.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/stream.hpp"

namespace symm {
namespace {

struct Nothing {
    __host__ __device__ void operator()(const simt::ThreadBlock&) const {}
};

/// Streams are also created while another thread captures, when few calls are allowed.
class Relaxed {
public:
    Relaxed() {
        cu_check(cuThreadExchangeStreamCaptureMode(&mode_), "cuThreadExchangeStreamCaptureMode()");
    }
    Relaxed(const Relaxed&) = delete;
    ~Relaxed() { cuThreadExchangeStreamCaptureMode(&mode_); }

private:
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace

void Stream::do_first_work() const {
    const Relaxed relaxed;
    launch(value_, 1, 1, Nothing{});
    synchronize("the first work of a new stream");
}

}  // namespace symm
