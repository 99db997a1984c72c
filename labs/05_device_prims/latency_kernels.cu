#include "labs/05_device_prims/latency_kernels.hpp"

#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"

namespace symm {

void launch_ping_pong(CUstream stream, const PingPong& kernel) {
    launch(stream, 1, 1, kernel);
}

void launch_barrier_rounds(CUstream stream, const BarrierRounds& kernel, unsigned blocks,
                           unsigned threads) {
    launch(stream, blocks, threads, kernel);
}

unsigned resident_barrier_blocks(unsigned threads) {
    return resident_blocks<BarrierRounds>(threads);
}

}  // namespace symm
