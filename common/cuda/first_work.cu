#include "common/cuda/graph.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/stream.hpp"

namespace symm {
namespace {

struct Nothing {
    __host__ __device__ void operator()(const simt::ThreadBlock&) const {}
};

}  // namespace

void Stream::do_first_work() const {
    const RelaxedCapture relaxed;  // streams are also created while another thread captures
    launch(value_, 1, 1, Nothing{});
    synchronize("the first work of a new stream");
}

}  // namespace symm
