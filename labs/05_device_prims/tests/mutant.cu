#include "labs/05_device_prims/tests/mutant.hpp"

#include "common/cuda/launch.hpp"

namespace symm {
namespace {

struct Zero {
    LatencyTestMemory* memory;
    __host__ __device__ void operator()(const simt::ThreadBlock&) const {
        *memory = LatencyTestMemory{};
    }
};

}  // namespace

void launch_zero(CUstream stream, LatencyTestMemory* memory) {
    launch(stream, 1, 1, Zero{memory});
}

void launch_games(CUstream stream, LatencyTestMemory* first, std::size_t stride, int rank,
                  const simt::Timeout& timeout) {
    const auto memory_of = [&](int which) {
        return reinterpret_cast<LatencyTestMemory*>(reinterpret_cast<char*>(first) +
                                                    which * stride);
    };
    launch(stream, 1, 1,
           PingPong{memory_of(rank), memory_of(1 - rank), timeout, Carrier::kSignal, rank, 1 - rank,
                    1, 20});
    launch(stream, 2, 8, BarrierRounds{{&first->barrier, stride, rank, 2}, first, timeout, 21, 20});
}

}  // namespace symm
